#include <algorithm>

#include "octet/ops/common_scale/common_scale.kernels.hpp"
#include "octet/ops/common_scale/common_scale.math.hpp"
#include "octet/tensor/cuda/check.cuh"
#include "octet/tensor/cuda/lanes.cuh"

namespace octet::cuda {
namespace {

constexpr int threads = 256, small_threads = 64;

template <class T, int N>
__global__ void __launch_bounds__(threads) maximum_kernel(const T* x, std::int64_t n, float* amax) {
  float most = 0;
  const std::int64_t stride = std::int64_t(gridDim.x) * threads * N;
  for (std::int64_t at = (std::int64_t(blockIdx.x) * threads + threadIdx.x) * N; at < n; at += stride) {
    if (at + N <= n) {
      most = octet::larger(largest_of(map(load<N>(x, at), [](float v) { return ops::finite_magnitude(v); })), most);
    } else {
      for (std::int64_t i = at; i < n; ++i) most = octet::larger(ops::finite_magnitude(load<1>(x, i).v[0]), most);
    }
  }
  most = block_fold<threads>(most, MaxFold{});
  if (threadIdx.x == 0) atomicMax(reinterpret_cast<int*>(amax), __float_as_int(most));  // bits of floats >= 0 are ordered as they are
}

__global__ void common_scales_kernel(const float* amax, const float* mu, float* scales, std::int64_t n) {
  const std::int64_t i = std::int64_t(blockIdx.x) * small_threads + threadIdx.x;
  if (i < n) scales[2 * i] = ops::common_descale(amax[i], mu[i]), scales[2 * i + 1] = amax[i];
}

__global__ void advance_mu_kernel(float* mu, const std::int64_t* counts, const std::int64_t* limits, ops::MuGrowth growth, std::int64_t n) {
  const std::int64_t i = std::int64_t(blockIdx.x) * small_threads + threadIdx.x;
  if (i < n) mu[i] = ops::next_mu(mu[i], counts[2 * i], limits[i], growth);
}

}  // namespace

void tensor_maximum(Queue queue, const Tensor& x, const Tensor& amax) {
  const std::int64_t n = x.count();
  if (n == 0) return;
  const unsigned blocks = unsigned(std::min<std::int64_t>(ceil_div(n, std::int64_t(threads) * 8), 1024));
  if (x.dtype == DType::f32) maximum_kernel<float, 4><<<blocks, threads, 0, queue>>>(x.f32(), n, amax.f32());
  else maximum_kernel<Bf16, 8><<<blocks, threads, 0, queue>>>(x.bf16(), n, amax.f32());
  launched("tensor_maximum");
}

void common_scales(Queue queue, const Tensor& amax, const Tensor& mu, const Tensor& scales) {
  const std::int64_t n = amax.count();
  if (n == 0) return;
  common_scales_kernel<<<unsigned(ceil_div(n, small_threads)), small_threads, 0, queue>>>(amax.f32(), mu.f32(), scales.f32(), n);
  launched("common_scales");
}

void advance_mu(Queue queue, const ops::AdvanceMu& a) {
  const std::int64_t n = a.mu.count();
  if (n == 0) return;
  advance_mu_kernel<<<unsigned(ceil_div(n, small_threads)), small_threads, 0, queue>>>(a.mu.f32(), a.counts.as<std::int64_t>(),
                                                                                       a.limits.as<std::int64_t>(), a.growth, n);
  launched("advance_mu");
}

}  // namespace octet::cuda
