#include "octet/train/step/sampling.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "octet/base/check.hpp"
#include "octet/numerics/order.hpp"
#include "octet/numerics/philox.hpp"

namespace octet::train {
namespace {

// The compiler compares several integers at once, but not floats, whose NaN have no order.
OrderedRange range_of(std::span<const float> logits) {
  constexpr std::size_t together = 16;
  std::int32_t least[together], most[together];
  OrderedRange all;
  std::ranges::fill(least, all.least), std::ranges::fill(most, all.most);
  std::size_t i = 0;
  for (; i + together <= logits.size(); i += together)
    for (std::size_t j = 0; j < together; ++j) {
      const std::int32_t x = ordered(logits[i + j]);
      least[j] = x < least[j] ? x : least[j], most[j] = x > most[j] ? x : most[j];
    }
  for (std::size_t j = 0; j < together; ++j) all.add({least[j], most[j]});
  for (; i < logits.size(); ++i) all.add(ordered(logits[i]));
  return all;
}

// Neighbours whose largest logit is known.
class Blocks {
 public:
  explicit Blocks(std::span<const float> logits) : logits_(logits) {
    for (std::size_t begin = 0; begin < logits.size(); begin += size) {
      const OrderedRange r = range_of(logits.subspan(begin, std::min(size, logits.size() - begin)));
      most_.push_back(r.most), all_.add(r);
    }
  }

  /// Or minus infinity.
  bool are_numbers() const { return all_.least >= ordered_minus_infinity && all_.most < ordered_infinity; }
  /// The first of the largest logits.
  std::int32_t most_likely() const { return ids_from(all_.most).front(); }
  /// Ids of at least `n` tokens, or all, without any that is less likely than those left out; in order.
  std::vector<std::int32_t> likely(std::size_t n) const {
    if (n >= most_.size()) return ids_from(std::numeric_limits<std::int32_t>::min());
    std::vector<std::int32_t> most = most_;
    std::ranges::nth_element(most, most.begin() + std::ptrdiff_t(n - 1), std::greater());
    return ids_from(most[n - 1]);
  }

 private:
  static constexpr std::size_t size = 256;

  // Of logits that are not below this one.
  std::vector<std::int32_t> ids_from(std::int32_t least) const {
    std::vector<std::int32_t> ids;
    for (std::size_t b = 0; b < most_.size(); ++b) {
      if (most_[b] < least) continue;
      for (std::size_t i = b * size; i < std::min((b + 1) * size, logits_.size()); ++i)
        if (ordered(logits_[i]) >= least) ids.push_back(std::int32_t(i));
    }
    return ids;
  }

  std::span<const float> logits_;
  std::vector<std::int32_t> most_;
  OrderedRange all_;
};

// The most likely tokens in falling order, as many as top_k keeps.
std::vector<std::int32_t> candidates(std::span<const float> logits, const Blocks& blocks, const Sampling& s) {
  if (s.temperature == 0) return {blocks.most_likely()};
  const std::size_t kept = s.top_k > 0 ? std::min(std::size_t(s.top_k), logits.size()) : logits.size();
  std::vector<std::int32_t> ids = blocks.likely(kept);
  std::partial_sort(ids.begin(), ids.begin() + std::ptrdiff_t(kept), ids.end(), [&](std::int32_t a, std::int32_t b) {
    const float x = logits[std::size_t(a)], y = logits[std::size_t(b)];
    return x > y || (x == y && a < b);
  });
  ids.resize(kept);
  return ids;
}

}  // namespace

bool are_finite(std::span<const float> logits) { return range_of(logits).is_finite(); }

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
  const Blocks blocks(logits);
  check(blocks.are_numbers(), "sample: logits must be numbers");
  const std::vector<std::int32_t> ids = candidates(logits, blocks, s);
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
