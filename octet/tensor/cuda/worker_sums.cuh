#pragma once

// Only for *.cuda.cu files: the end of a reduction whose blocks each left a row of sums.

#include "octet/tensor/cuda/check.cuh"
#include "octet/tensor/shape.hpp"

namespace octet::cuda {

/// out[c] += sum_w partial[w * stride + c], c < cols: always in the same order.
template <int side>
__global__ void worker_sums_kernel(int workers, std::int64_t cols, std::int64_t stride, const float* partial, float* out) {
  __shared__ float parts[side][side + 1];
  const std::int64_t c = std::int64_t(blockIdx.x) * side + threadIdx.x;
  float sum = 0;
  if (c < cols)
    for (int w = int(threadIdx.y); w < workers; w += side) sum += partial[w * stride + c];
  parts[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || c >= cols) return;
  for (int y = 1; y < side; ++y) sum += parts[y][threadIdx.x];
  out[c] += sum;
}
inline void add_worker_sums(cudaStream_t queue, int workers, std::int64_t cols, std::int64_t stride, const float* partial, float* out) {
  constexpr int side = 32;
  if (cols == 0) return;
  worker_sums_kernel<side><<<unsigned(ceil_div(cols, side)), dim3(side, side), 0, queue>>>(workers, cols, stride, partial, out);
  launched("worker sums");
}

}  // namespace octet::cuda
