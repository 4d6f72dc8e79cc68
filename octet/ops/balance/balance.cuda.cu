#include "octet/ops/balance/balance.kernels.hpp"
#include "octet/ops/balance/balance.math.hpp"
#include "octet/tensor/cuda/check.cuh"

namespace octet::cuda {
namespace {

constexpr int threads = 256;

__global__ void balance_gradient_kernel(std::int64_t n, const float* counts, const float* scale, float factor, float* dscores) {
  const std::int64_t i = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) dscores[i] = (scale != nullptr ? factor * *scale : factor) * counts[i];
}

// One thread per layer: once per step.
__global__ void balance_bias_kernel(std::int64_t L, std::int64_t E, const float* counts, const float* skip, float rate, float* bias) {
  const std::int64_t l = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (l < L && *skip == 0) ops::balance_bias_layer(E, counts + l * E, rate, bias + l * E);
}

}  // namespace

void balance_gradient(Queue queue, const ops::BalanceGradient& a) {
  const std::int64_t n = a.counts.count();
  if (n == 0) return;
  balance_gradient_kernel<<<unsigned(ceil_div(n, threads)), threads, 0, queue>>>(n, a.counts.f32(), a.scale.f32(), a.factor,
                                                                                 a.dscores.f32());
  launched("balance_gradient");
}

void balance_bias(Queue queue, const ops::BalanceBias& a) {
  const std::int64_t L = a.counts.shape[0], E = a.counts.shape[1];
  if (L == 0) return;
  balance_bias_kernel<<<unsigned(ceil_div(L, threads)), threads, 0, queue>>>(L, E, a.counts.f32(), a.skip.f32(), a.rate, a.bias.f32());
  launched("balance_bias");
}

}  // namespace octet::cuda
