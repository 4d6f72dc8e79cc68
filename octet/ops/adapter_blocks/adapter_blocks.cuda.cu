#include "octet/ops/adapter_blocks/adapter_blocks.kernels.hpp"
#include "octet/tensor/cuda/check.cuh"

namespace octet::cuda {
namespace {

constexpr int threads = 256;

template <class T>
__global__ void spread_kernel(std::int64_t count, const T* from, ops::RowBlocks blocks, std::int64_t width, float factor, T* to) {
  const std::int64_t i = std::int64_t(blockIdx.x) * threads + threadIdx.x, columns = width * blocks.count;
  if (i < count) to[i] = ops::spread_value(blocks, from, width, factor, i / columns, i % columns);
}

template <class T>
__global__ void collect_kernel(std::int64_t count, const float* from, ops::RowBlocks blocks, std::int64_t width, float factor,
                               bool accumulate, T* to) {
  const std::int64_t i = std::int64_t(blockIdx.x) * threads + threadIdx.x;
  if (i < count) ops::collect_value(blocks, from, width, factor, accumulate, to, i / width, i % width);
}

}  // namespace

void spread_blocks(Queue queue, const Tensor& from, const ops::RowBlocks& blocks, float factor, const Tensor& to) {
  if (to.count() == 0) return;
  dispatch<float, Bf16, Fp16>(to.dtype, "spread_blocks", [&]<class T>() {
    spread_kernel<T><<<unsigned(ceil_div(to.count(), threads)), threads, 0, queue>>>(to.count(), from.as<T>(), blocks, from.shape[1],
                                                                                     factor, to.as<T>());
    launched("spread_blocks");
  });
}

void collect_blocks(Queue queue, const Tensor& from, const ops::RowBlocks& blocks, float factor, bool accumulate, const Tensor& to) {
  const std::int64_t count = from.shape[0] * to.shape[1];
  if (count == 0) return;
  dispatch<float, Bf16>(to.dtype, "collect_blocks", [&]<class T>() {
    collect_kernel<T>
        <<<unsigned(ceil_div(count, threads)), threads, 0, queue>>>(count, from.f32(), blocks, to.shape[1], factor, accumulate, to.as<T>());
    launched("collect_blocks");
  });
}

}  // namespace octet::cuda
