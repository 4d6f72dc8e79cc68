#pragma once

// Only for *.cuda.cu files: sinks of ops that need a statistic of a whole row. Where plain values and a maximum of all are all that the
// first pass makes, rows stand in registers and are read once; elsewhere tiles follow a pass that finds the statistics (see tile.cuh).

#include "octet/ops/sink/tile.cuh"
#include "octet/tensor/cuda/device.hpp"
#include "octet/tensor/cuda/held_row.cuh"

namespace octet::cuda {

// A Body has
//   find(lanes, cols, r, x)      the statistic of row r, which it stores and returns
//   scale(lanes, cols, s, x, y)  the row, its statistic known; both by the op's shared row bodies

/// Where a row's values go: to memory, while the largest of their magnitudes is kept.
template <class T, int N>
struct StoredRow {
  T* to;
  Pack<N>* most;  // null: nobody asks
};
template <class T, int threads, int packs, int N>
struct StoringLanes : HeldLanes<threads, packs, N> {
  using Cursor = typename HeldLanes<threads, packs, N>::Cursor;
  __device__ __forceinline__ void store(StoredRow<T, N>* row, Cursor c, const Pack<N>& v) const {
    const uint4 q = packed<T>(v);
    *reinterpret_cast<uint4*>(row->to + c.at) = q;
    if (row->most) *row->most = larger(magnitude(unpacked<T>(q)), *row->most);
  }
};

/// A warp or a block a row. `top`, `amax`: places whose maximum is raised; both may be null.
template <class T, class Body, int threads, int packs>
__global__ void __launch_bounds__(block_of<threads>, 1280 / block_of<threads>)
    fill_rows_kernel(std::int64_t rows, std::int64_t cols, const T* x, T* y, float* top, float* amax, const Body body) {
  constexpr int N = 16 / int(sizeof(T)), groups = block_of<threads> / threads;
  const StoringLanes<T, threads, packs, N> lanes;
  Pack<N> most{};
  const std::int64_t step = std::int64_t(gridDim.x) * groups;
  for (std::int64_t r = std::int64_t(blockIdx.x) * groups + int(threadIdx.x) / threads; r < rows; r += step) {
    HeldRow<T, packs> in;
    lanes.fetch(x + r * cols, cols, in);
    StoredRow<T, N> out{y + r * cols, top || amax ? &most : nullptr};
    body.scale(lanes, cols, body.find(lanes, cols, r, &in), &in, &out);
  }
  const float largest = warp_max(largest_of(most));
  if (threadIdx.x % 32 != 0) return;
  if (top) raise(top, largest);
  if (amax) raise(amax, largest);
}

/// A warp a row.
template <class T, class Body, int N>
__global__ void row_statistics_kernel(std::int64_t rows, std::int64_t cols, const T* x, const Body body) {
  const std::int64_t r = (std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x) / 32;
  if (r < rows) body.find(RowLanes<32, N>{}, cols, r, x + r * cols);
}

inline bool wants_a_maximum_at_most(const Side& side) { return side.part == Part::nothing || side.part == Part::top_of_tensor; }

/// Fills the sink with rows of x as the body scales them. `make` makes tiles of them once the statistics stand in memory, in packs of 8
/// where `aligned`.
template <class T, class Body, class Make>
void fill_sink_by_rows(Queue queue, const ops::Sink& sink, const Tensor& x, const Body& body, const Make& make, bool aligned) {
  const std::int64_t rows = x.shape[0], cols = x.shape[1];
  const TileJob job = first_job(queue, sink);
  const bool whole =
      rows > 0 && sink.plain && aligned && has_aligned_packs(sink) && wants_a_maximum_at_most(job.row) && wants_a_maximum_at_most(job.col);
  if (whole && with_held_rows<T>(cols, [&]<int threads, int packs>() {
        const std::int64_t blocks = ceil_div(rows, block_of<threads> / threads);
        const std::int64_t most = facts().multiprocessors * (1280 / block_of<threads>);
        float* const top = job.row.tops ? job.row.tops : job.col.tops;
        fill_rows_kernel<T, Body, threads, packs><<<unsigned(blocks < most ? blocks : most), block_of<threads>, 0, queue>>>(
            rows, cols, x.as<T>(), sink.plain.as<T>(), top, job.amax, body);
        launched("fill_rows_kernel");
      }))
    return encode_waiting(queue, sink, sink.plain);
  if (rows > 0) {
    constexpr int threads = 256;
    with_pack<T>(cols, [&]<int N>() {
      row_statistics_kernel<T, Body, N><<<unsigned(ceil_div(rows * 32, threads)), threads, 0, queue>>>(rows, cols, x.as<T>(), body);
    });
    launched("row_statistics_kernel");
  }
  fill_sink<T>(queue, sink, job, make, aligned, {.last_first = true});
}

}  // namespace octet::cuda
