#include "octet/train/step/sampling.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "octet/base/check.hpp"
#include "octet/numerics/philox.hpp"

namespace octet::train {
namespace {

// The most likely tokens in falling order, as many as top_k keeps.
std::vector<std::int32_t> candidates(std::span<const float> logits, const Sampling& s) {
  if (s.temperature == 0) return {std::int32_t(std::ranges::max_element(logits) - logits.begin())};
  std::vector<std::int32_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  const std::size_t kept = s.top_k > 0 ? std::min(std::size_t(s.top_k), ids.size()) : ids.size();
  std::partial_sort(ids.begin(), ids.begin() + std::ptrdiff_t(kept), ids.end(), [&](std::int32_t a, std::int32_t b) {
    const float x = logits[std::size_t(a)], y = logits[std::size_t(b)];
    return x > y || (x == y && a < b);
  });
  ids.resize(kept);
  return ids;
}

}  // namespace

void penalize(std::span<float> logits, std::span<const std::int32_t> text, double penalty) {
  check(penalty > 0, "penalize: the penalty must be above 0, got {}", penalty);
  if (penalty == 1) return;
  std::vector<std::int32_t> ids(text.begin(), text.end());
  std::ranges::sort(ids);
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  for (const std::int32_t id : ids) {
    check(id >= 0 && std::size_t(id) < logits.size(), "penalize: id {} of {} logits", id, logits.size());
    float& x = logits[std::size_t(id)];
    x = float(x > 0 ? double(x) / penalty : double(x) * penalty);
  }
}

std::int32_t sample(std::span<const float> logits, const Sampling& s, std::uint64_t draw) {
  check(!logits.empty(), "sample: no logits");
  check(std::none_of(logits.begin(), logits.end(), [](float x) { return std::isnan(x) || x == INFINITY; }),
        "sample: logits must be numbers");
  const std::vector<std::int32_t> ids = candidates(logits, s);
  std::vector<double> weight;
  double sum = 0;
  for (const std::int32_t id : ids) {
    weight.push_back(s.temperature == 0 ? 1 : std::exp((double(logits[std::size_t(id)]) - logits[std::size_t(ids[0])]) / s.temperature));
    sum += weight.back();
  }
  double kept = 0;
  std::size_t n = 0;
  while (n < weight.size() && (n == 0 || kept < s.top_p * sum)) kept += weight[n++];
  double left = double(uniform(philox(s.seed, draw).w[0])) * kept;
  for (std::size_t i = 0; i + 1 < n; ++i)
    if ((left -= weight[i]) <= 0) return ids[i];
  return ids[n - 1];
}

}  // namespace octet::train
