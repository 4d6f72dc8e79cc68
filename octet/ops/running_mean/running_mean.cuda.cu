#include "octet/ops/running_mean/running_mean.kernels.hpp"
#include "octet/ops/running_mean/running_mean.math.hpp"
#include "octet/tensor/cuda/check.cuh"
#include "octet/tensor/cuda/pack.cuh"

namespace octet::cuda {
namespace {

template <class T, int N>
__global__ void running_mean_kernel(std::int64_t packs, const T* x, const float* descale, float share, float* mean) {
  const std::int64_t i = (std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x) * N;
  const float factor = descale != nullptr ? *descale : 1.0f;
  if (i < packs * N) store(mean, i, ops::moved_mean(load<N>(mean, i), load<N>(x, i) * factor, share));
}

}  // namespace

void running_mean(Queue queue, const Tensor& x, const Tensor& descale, float share, const Tensor& mean) {
  if (x.count() == 0) return;
  dispatch<float, Bf16, Fp16, E4M3>(x.dtype, "running_mean", [&]<class T>() {
    constexpr int threads = 256, N = 4;  // 16 bytes of the mean
    const std::int64_t packs = x.count() / N, at = packs * N, rest = x.count() - at;
    if (packs > 0)
      running_mean_kernel<T, N>
          <<<unsigned(ceil_div(packs, threads)), threads, 0, queue>>>(packs, x.as<T>(), descale.f32(), share, mean.as<float>());
    if (rest > 0) running_mean_kernel<T, 1><<<1, 32, 0, queue>>>(rest, x.as<T>() + at, descale.f32(), share, mean.as<float>() + at);
    launched("running_mean");
  });
}

}  // namespace octet::cuda
