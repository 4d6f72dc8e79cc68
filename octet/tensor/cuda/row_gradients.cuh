#pragma once

// Only for *.cuda.cu files: the backward of an op on rows with per-column weights: a gradient per row, and sums over all rows per column.

#include <algorithm>

#include "octet/tensor/cuda/check.cuh"
#include "octet/tensor/cuda/device.hpp"
#include "octet/tensor/cuda/held_row.cuh"
#include "octet/tensor/cuda/worker_sums.cuh"

namespace octet::cuda {

/// dy, x and dx: [rows, cols] of T. Each block leaves a row of `sums_of_workers`: `Body::sums` times cols.
template <class T>
struct RowGradients {
  std::int64_t rows, cols;
  const T *dy, *x;
  T* dx;
  float* sums_of_workers;
  bool accumulate;  // dx is added to
};

// A Body has
//   static constexpr int sums;
//   row(lanes, cols, r, dy, x, accumulate, dx, sums)   row r by the op's shared row body; sum s goes to where sums + s points

/// Blocks per multiprocessor, as far as registers allow.
template <int threads, class Body>
inline constexpr int blocks_of_rows = (Body::sums == 1 ? 512 : 384) / block_of<threads>;

/// Rows in registers: a warp or a whole block takes a row at a time, and each thread keeps the sums of its columns.
template <class T, class Body, int threads, int packs>
__global__ void __launch_bounds__(block_of<threads>, blocks_of_rows<threads, Body>)
    held_rows_kernel(const RowGradients<T> a, const Body body) {
  constexpr int N = 16 / int(sizeof(T)), groups = block_of<threads> / threads;
  extern __shared__ float shared[];
  const HeldLanes<threads, packs, N> lanes;
  HeldSums<N, packs> sums[Body::sums]{};
  const int group = int(threadIdx.x) / threads;
  for (std::int64_t r = std::int64_t(blockIdx.x) * groups + group; r < a.rows; r += std::int64_t(gridDim.x) * groups) {
    const std::int64_t at = r * a.cols;
    HeldRow<T, packs> dy, x, dx;
    lanes.fetch(a.dy + at, a.cols, dy), lanes.fetch(a.x + at, a.cols, x);
    if (a.accumulate) lanes.fetch(a.dx + at, a.cols, dx);
    body.row(lanes, a.cols, r, &dy, &x, a.accumulate, &dx, &sums[0]);
    lanes.put(dx, a.cols, a.dx + at);
  }
  float* const to = a.sums_of_workers + blockIdx.x * Body::sums * a.cols;
#pragma unroll
  for (int s = 0; s < Body::sums; ++s)
    for (int g = 0; g < groups; ++g) {  // groups add up in order
      if (g == group)
        lanes.each(a.cols, [&](auto c) {
          Pack<N> sum = sums[s].pack[c.pack];
          if (g > 0) sum = load<N>(shared, c.at) + sum;
          if (g + 1 < groups) store(shared, c.at, sum);
          else store(to + s * a.cols, c.at, sum);
        });
      if (groups > 1) __syncthreads();
    }
}

struct SharedSums {
  float* first;
  std::int64_t cols;
  __device__ __forceinline__ float* operator+(int s) const { return first + s * cols; }
};

/// Rows of any length: a block takes every gridDim.x-th row, reads it twice and adds up its sums in shared memory.
template <class T, class Body, int threads, int N>
__global__ void __launch_bounds__(threads) long_rows_kernel(const RowGradients<T> a, const Body body) {
  extern __shared__ float shared[];
  for (std::int64_t c = threadIdx.x; c < Body::sums * a.cols; c += threads) shared[c] = 0;
  __syncthreads();
  for (std::int64_t r = blockIdx.x; r < a.rows; r += gridDim.x) {
    const std::int64_t at = r * a.cols;
    body.row(RowLanes<threads, N>{}, a.cols, r, a.dy + at, a.x + at, a.accumulate, a.dx + at, SharedSums{shared, a.cols});
  }
  __syncthreads();
  for (std::int64_t c = threadIdx.x; c < Body::sums * a.cols; c += threads)
    a.sums_of_workers[blockIdx.x * Body::sums * a.cols + c] = shared[c];
}

/// Runs the body over all rows, by at most `workers` blocks; returns how many rows of sums there are.
template <class T, class Body>
int run_row_gradients(cudaStream_t queue, const RowGradients<T>& a, const Body& body, int workers) {
  int blocks = workers;
  const bool held = with_held_rows<T>(a.cols, [&]<int threads, int packs>() {
    const int shared = threads == block_of<threads> ? 0 : int(a.cols * std::int64_t(sizeof(float)));
    blocks = std::min(workers, blocks_of_rows<threads, Body> * facts().multiprocessors);
    held_rows_kernel<T, Body, threads, packs><<<unsigned(blocks), block_of<threads>, unsigned(shared), queue>>>(a, body);
  });
  if (!held)
    with_pack<T>(a.cols, [&]<int N>() {
      constexpr int threads = 256;
      const int shared = Body::sums * int(a.cols * std::int64_t(sizeof(float)));
      allow_shared(long_rows_kernel<T, Body, threads, N>, shared + 1024);  // its own counts too
      long_rows_kernel<T, Body, threads, N><<<unsigned(blocks), threads, unsigned(shared), queue>>>(a, body);
    });
  launched("row gradients");
  return blocks;
}

}  // namespace octet::cuda
