#pragma once

// Only for *.cuda.cu files: the end of a reduction whose blocks each left a row of sums.

#include "octet/tensor/cuda/check.cuh"
#include "octet/tensor/shape.hpp"

namespace octet::cuda {

/// out[c] += sum_w partial[w * stride + c], c < cols: always in the same order.
template <int across, int down>
__global__ void worker_sums_kernel(int workers, std::int64_t cols, std::int64_t stride, const float* partial, float* out) {
  __shared__ float parts[down][across + 1];
  const int x = int(threadIdx.x), y = int(threadIdx.y);
  const std::int64_t c = std::int64_t(blockIdx.x) * across + x;
  float sum = 0;
  if (c < cols)
    for (int w = y; w < workers; w += down) sum += partial[w * stride + c];
  parts[y][x] = sum;
  for (int half = down / 2; half > 0; half /= 2) {
    __syncthreads();
    if (y < half) parts[y][x] += parts[y + half][x];
  }
  if (y == 0 && c < cols) out[c] += parts[0][x];
}
inline void add_worker_sums(cudaStream_t queue, int workers, std::int64_t cols, std::int64_t stride, const float* partial, float* out) {
  constexpr int across = 8, down = 128;  // a block reads whole sectors of memory, and there are enough blocks
  if (cols == 0) return;
  worker_sums_kernel<across, down><<<unsigned(ceil_div(cols, across)), dim3(across, down), 0, queue>>>(workers, cols, stride, partial, out);
  launched("worker sums");
}

}  // namespace octet::cuda
