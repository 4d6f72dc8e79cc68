#include "octet/ops/dropout/dropout.kernels.hpp"
#include "octet/tensor/cuda/check.cuh"

namespace octet::cuda {
namespace {

constexpr int threads = 256;

// Neighbouring threads read neighbours in memory.
template <class T>
__global__ void dropout_kernel(std::int64_t count, ops::DropoutMask mask, const std::int64_t* numbers, const T* x, T* y) {
  const std::int64_t i = std::int64_t(blockIdx.x) * threads + threadIdx.x;
  if (i >= count) return;
  const bool tokens_last = mask.token_stride == 1;
  const std::int64_t inner = tokens_last ? mask.tokens : mask.counters();
  ops::drop(mask, numbers, x, y, tokens_last ? i % inner : i / inner, tokens_last ? i / inner : i % inner);
}

}  // namespace

void dropout(Queue queue, const ops::Dropout& d) {
  const ops::DropoutMask mask(d);
  const std::int64_t count = mask.tokens * mask.counters();
  if (count == 0) return;
  dispatch<float, Bf16, Fp16>(d.x.dtype, "dropout", [&]<class T>() {
    dropout_kernel<T>
        <<<unsigned(ceil_div(count, threads)), threads, 0, queue>>>(count, mask, d.numbers.as<std::int64_t>(), d.x.as<T>(), d.y.as<T>());
    launched("dropout");
  });
}

}  // namespace octet::cuda
