#include "octet/ops/preference/preference.kernels.hpp"
#include "octet/ops/preference/preference.math.hpp"
#include "octet/tensor/cuda/check.cuh"

namespace octet::cuda {
namespace {

constexpr int threads = 128;

// On thread 0, in an order that is always the same.
__device__ double block_sum(double x) {
  __shared__ double sums[threads];
  sums[threadIdx.x] = x;
  __syncthreads();
  for (int half = threads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    __syncthreads();
  }
  const double out = sums[0];
  __syncthreads();
  return out;
}

__device__ double log_probability(const float* losses, std::int32_t begin, std::int32_t end) {
  double sum = 0;
  for (std::int32_t t = begin + std::int32_t(threadIdx.x); t < end; t += threads) sum += double(losses[t]);
  return -block_sum(sum);
}

struct Pairs {
  const float* losses;
  const std::int32_t* places;
  const double* references;
  ops::PreferenceForm form;
  float* weights;
  double *log_probabilities, *results;
};

// A block for each pair.
__global__ void __launch_bounds__(threads) preference_kernel(const Pairs a) {
  __shared__ ops::PairResult result;
  const std::int64_t i = blockIdx.x;
  const std::int32_t* const at = a.places + 4 * i;
  double* const out = a.results + ops::PairResult::entries * i;
  const double chosen = log_probability(a.losses, at[0], at[1]), rejected = log_probability(a.losses, at[2], at[3]);
  const bool first = threadIdx.x == 0;
  if (first && a.log_probabilities != nullptr) a.log_probabilities[2 * i] = chosen, a.log_probabilities[2 * i + 1] = rejected;
  if (at[0] == at[1]) {
    if (threadIdx.x < ops::PairResult::entries) out[threadIdx.x] = 0;
    return;
  }
  if (first) result = ops::pair_result(a.form, a.references + 2 * i, chosen, rejected);
  __syncthreads();
  if (threadIdx.x < ops::PairResult::entries) out[threadIdx.x] = result.values[threadIdx.x];
  for (std::int32_t t = at[0] + std::int32_t(threadIdx.x); t < at[1]; t += threads) a.weights[t] = float(result.weight);
  for (std::int32_t t = at[2] + std::int32_t(threadIdx.x); t < at[3]; t += threads) a.weights[t] = float(-result.weight);
}

__global__ void __launch_bounds__(threads)
    preference_sums_kernel(std::int64_t pairs, const double* results, double* loss_sum, std::int64_t* counted, double* sums) {
  for (int e = 0; e < ops::PairResult::entries; ++e) {
    double own = 0;
    for (std::int64_t i = threadIdx.x; i < pairs; i += threads) own += results[ops::PairResult::entries * i + e];
    const double sum = block_sum(own);
    if (threadIdx.x > 0) continue;
    if (e < ops::preference_sums) sums[e] += sum;
    else if (e == ops::preference_sums) *loss_sum += sum;
    else *counted += std::int64_t(sum);
  }
}

}  // namespace

void preference(Queue queue, const ops::Preference& a, const Tensor& results) {
  const std::int64_t pairs = a.places.shape[0];
  if (pairs == 0) return;
  preference_kernel<<<unsigned(pairs), threads, 0, queue>>>({a.losses.f32(), a.places.as<std::int32_t>(), a.references.as<double>(), a.form,
                                                             a.weights.f32(), a.log_probabilities.as<double>(), results.as<double>()});
  preference_sums_kernel<<<1, threads, 0, queue>>>(pairs, results.as<double>(), a.loss_sum.as<double>(), a.counted.as<std::int64_t>(),
                                                   a.sums.as<double>());
  launched("preference");
}

}  // namespace octet::cuda
