#include "octet/ops/preference/preference.kernels.hpp"
#include "octet/ops/preference/preference.math.hpp"

namespace octet::cpu::OCTET_ISA {
namespace {

double log_probability(const float* losses, std::int32_t begin, std::int32_t end) {
  double sum = 0;
  for (std::int32_t t = begin; t < end; ++t) sum += double(losses[t]);
  return -sum;
}

}  // namespace

void preference(const ops::Preference& a, const Tensor& results) {
  const std::int64_t pairs = a.places.shape[0];
  for (std::int64_t i = 0; i < pairs; ++i) {
    const std::int32_t* const at = a.places.as<std::int32_t>() + 4 * i;
    double* const out = results.as<double>() + ops::PairResult::entries * i;
    double* const known = a.log_probabilities ? a.log_probabilities.as<double>() + 2 * i : nullptr;
    const double chosen = log_probability(a.losses.f32(), at[0], at[1]), rejected = log_probability(a.losses.f32(), at[2], at[3]);
    if (known != nullptr) known[0] = chosen, known[1] = rejected;
    if (at[0] == at[1]) {
      for (int e = 0; e < ops::PairResult::entries; ++e) out[e] = 0;
      continue;
    }
    const ops::PairResult r = ops::pair_result(a.form, a.references.as<double>() + 2 * i, chosen, rejected);
    for (int e = 0; e < ops::PairResult::entries; ++e) out[e] = r.values[e];
    for (std::int32_t t = at[0]; t < at[1]; ++t) a.weights.f32()[t] = float(r.weight);
    for (std::int32_t t = at[2]; t < at[3]; ++t) a.weights.f32()[t] = float(-r.weight);
  }
  double sums[ops::PairResult::entries] = {};
  for (std::int64_t i = 0; i < pairs; ++i)
    for (int e = 0; e < ops::PairResult::entries; ++e) sums[e] += results.as<double>()[ops::PairResult::entries * i + e];
  for (int e = 0; e < ops::preference_sums; ++e) a.sums.as<double>()[e] += sums[e];
  *a.loss_sum.as<double>() += sums[ops::preference_sums];
  *a.counted.as<std::int64_t>() += std::int64_t(sums[ops::preference_sums + 1]);
}

}  // namespace octet::cpu::OCTET_ISA
