#pragma once

#include <cstdint>

#include "octet/numerics/sigmoid.hpp"
#include "octet/ops/route/route.hpp"

// A token's row of E experts, shared by 32 lanes: expert i is lane i % 32's. On a GPU the lanes are a warp; WholeToken is all of them, one
// after the other. Sums are those of the lanes, each in the order of i, added in halves, so that every device has the same bits. Formulas
// in route.hpp.

namespace octet::ops {

/// Of `tokens` rows, those of sequence s: none where end is not above first.
struct RowRange {
  std::int64_t first, end;
};
OCTET_HD RowRange rows_of_sequence(const SequenceRows& rows, std::int64_t s, std::int64_t tokens) {
  const std::int64_t first = s * rows.length - rows.first, end = first + rows.length;
  return {first < 0 ? 0 : first, end < tokens ? end : tokens};
}

inline constexpr int token_lanes = 32;

/// The place of an expert, or of a group, in the order of choice: by descending value, of equal ones by ascending index.
template <class V>
struct Candidate {
  V value;
  std::int64_t index;

  OCTET_HD bool before(const Candidate& b) const { return value > b.value || (value == b.value && index < b.index); }
};

template <class V>
struct WholeToken {
  template <class F>
  OCTET_HD void each(std::int64_t n, const F& f) const {
    for (std::int64_t i = 0; i < n; ++i) f(i);
  }
  template <class F>
  OCTET_HD V sum(std::int64_t n, const F& f) const {
    V part[token_lanes] = {};
    for (std::int64_t i = 0; i < n; ++i) part[i % token_lanes] = part[i % token_lanes] + f(i);
    for (int step = token_lanes / 2; step > 0; step /= 2)
      for (int l = 0; l < step; ++l) part[l] = part[l] + part[l + step];
    return part[0];
  }
  template <class F>
  OCTET_HD bool any(std::int64_t n, const F& f) const {
    bool found = false;
    for (std::int64_t i = 0; i < n; ++i) found |= f(i);
    return found;
  }
  /// The first place after `last`.
  template <class F>
  OCTET_HD Candidate<V> next(std::int64_t n, const Candidate<V>& last, const F& f) const {
    Candidate<V> best{V(-__builtin_inff()), n};
    for (std::int64_t i = 0; i < n; ++i) {
      const Candidate<V> p{f(i), i};
      if (last.before(p) && p.before(best)) best = p;
    }
    return best;
  }
  OCTET_HD bool first() const { return true; }
  OCTET_HD void meet() const {}
};

template <class V>
OCTET_HD Candidate<V> before_all() {
  return {V(__builtin_inff()), -1};
}

/// The largest logit and the sum of exp(u - most).
template <class V>
struct TokenSoftmax {
  V most, sum;
};
template <class V, class Lanes>
OCTET_HD TokenSoftmax<V> token_softmax(Lanes lanes, std::int64_t experts, const V* logits) {
  using math::exp_nonpositive;
  const V most = lanes.next(experts, before_all<V>(), [&](std::int64_t i) { return logits[i]; }).value;
  return {most, lanes.sum(experts, [&](std::int64_t i) { return exp_nonpositive(V(logits[i] - most)); })};
}

/// scores[i] = p; false, and NaN, where a logit is not finite.
template <class V, class Lanes>
OCTET_HD bool score_experts(Lanes lanes, Routing::Score score, std::int64_t experts, const V* logits, V* scores) {
  using math::exp_nonpositive, math::sigmoid;
  const bool bad = lanes.any(experts, [&](std::int64_t i) {
    const V none = logits[i] - logits[i];
    return !(none == none);
  });
  if (bad) {
    lanes.each(experts, [&](std::int64_t i) { scores[i] = V(__builtin_nanf("")); });
  } else if (score == Routing::Score::sigmoid) {
    lanes.each(experts, [&](std::int64_t i) { scores[i] = sigmoid(logits[i]).value; });
  } else {
    const TokenSoftmax<V> row = token_softmax(lanes, experts, logits);
    lanes.each(experts, [&](std::int64_t i) { scores[i] = exp_nonpositive(V(logits[i] - row.most)) / row.sum; });
  }
  return !bad;
}

/// The rank of an expert: p + bias. A NaN in the bias ranks last.
template <class V>
OCTET_HD V rank_of(const V* scores, const float* bias, std::int64_t i) {
  if (bias == nullptr) return scores[i];
  const V rank = scores[i] + bias[i];
  return rank == rank ? rank : V(-__builtin_inff());
}

template <class V>
OCTET_HD V group_rank(Routing::GroupScore by, const V* scores, const float* bias, std::int64_t begin, std::int64_t size) {
  V largest = V(-__builtin_inff()), second = largest;
  for (std::int64_t i = begin; i < begin + size; ++i) {
    const V rank = rank_of(scores, bias, i);
    if (rank > largest) second = largest, largest = rank;
    else if (rank > second) second = rank;
  }
  return by == Routing::GroupScore::largest ? largest : largest + second;
}

/// Bit g: group g is kept.
template <class V, class Lanes>
OCTET_HD std::uint64_t kept_groups(Lanes lanes, const Routing& r, std::int64_t experts, const V* scores, const float* bias) {
  if (r.kept_groups == r.groups) return ~std::uint64_t(0);
  const std::int64_t size = experts / r.groups;
  std::uint64_t kept = 0;
  Candidate<V> last = before_all<V>();
  for (std::int64_t n = 0; n < r.kept_groups; ++n) {
    last = lanes.next(r.groups, last, [&](std::int64_t g) { return group_rank(r.group_score, scores, bias, g * size, size); });
    kept |= std::uint64_t(1) << last.index;
  }
  return kept;
}

template <class V, class Lanes>
OCTET_HD void route_row(Lanes lanes, const Routing& r, std::int64_t token, std::int64_t experts, const V* logits, const float* bias,
                        std::int32_t* chosen, V* weights, V* scores) {
  const bool finite = score_experts(lanes, r.score, experts, logits, scores);
  lanes.meet();
  const std::uint64_t kept = finite ? kept_groups(lanes, r, experts, scores, bias) : 0;
  const std::int64_t size = experts / r.groups;
  Candidate<V> last = before_all<V>();
  V sum{};
  for (std::int64_t k = 0; k < r.choices; ++k) {
    if (r.in_turn) {
      last.index = (token * r.choices + k) % experts;
    } else if (finite) {
      last = lanes.next(experts, last,
                        [&](std::int64_t i) { return (kept >> (i / size) & 1) != 0 ? rank_of(scores, bias, i) : V(-__builtin_inff()); });
    } else {
      last.index = k;
    }
    const V p = scores[last.index];
    sum = k == 0 ? p : sum + p;
    if (lanes.first()) chosen[k] = std::int32_t(last.index), weights[k] = r.normalize ? p : p * r.scaling;
  }
  if (!r.normalize || !lanes.first()) return;
  for (std::int64_t k = 0; k < r.choices; ++k) weights[k] = weights[k] / (sum + r.floor) * r.scaling;
}

/// The gradient of p of expert i, from the weights and from `dscores`.
template <class V>
struct ScoreGradient {
  const Routing& r;
  const std::int32_t* chosen;
  const V *dweights, *dscores;  // dscores may be null
  V factor, common;             // of a chosen expert: factor * dw - common
  V inner, total;               // of dscores: (dscores - inner) / total

  OCTET_HD V at(std::int64_t i) const {
    V d = dscores != nullptr ? (dscores[i] - inner) / total : V{};
    for (std::int64_t k = 0; k < r.choices; ++k)
      if (chosen[k] == i) d = d + (factor * dweights[k] - common);
    return d;
  }
};

template <class V, class Lanes>
OCTET_HD ScoreGradient<V> score_gradient(Lanes lanes, const Routing& r, std::int64_t experts, const V* scores, const std::int32_t* chosen,
                                         const V* dweights, const V* dscores, bool relative) {
  ScoreGradient<V> g{r, chosen, dweights, dscores, V(r.scaling), V{}, V{}, V(1.0f)};
  if (r.normalize) {
    V sum{}, dot{};
    for (std::int64_t k = 0; k < r.choices; ++k) sum = sum + scores[chosen[k]], dot = dot + dweights[k] * scores[chosen[k]];
    sum = sum + r.floor;
    g.factor = V(r.scaling) / sum, g.common = g.factor * (dot / sum);
  }
  if (dscores != nullptr && relative) {
    g.total = lanes.sum(experts, [&](std::int64_t i) { return scores[i]; });
    g.inner = lanes.sum(experts, [&](std::int64_t i) { return dscores[i] * scores[i]; }) / g.total;
  }
  return g;
}

template <class V, class Lanes>
OCTET_HD void route_backward_row(Lanes lanes, const Routing& r, std::int64_t experts, const V* logits, const ScoreGradient<V>& ds,
                                 const V* scores, float z_loss, V* dlogits) {
  using math::exp_nonpositive, math::log, math::sigmoid;
  if (r.score == Routing::Score::sigmoid) {
    lanes.each(experts, [&](std::int64_t i) { dlogits[i] = ds.at(i) * (scores[i] * sigmoid(logits[i]).complement); });
  } else {
    lanes.each(experts, [&](std::int64_t i) { dlogits[i] = ds.at(i); });
    const V mean = lanes.sum(experts, [&](std::int64_t i) { return scores[i] * dlogits[i]; });
    lanes.each(experts, [&](std::int64_t i) { dlogits[i] = scores[i] * (dlogits[i] - mean); });
  }
  if (z_loss == 0) return;
  const TokenSoftmax<V> row = token_softmax(lanes, experts, logits);
  const V factor = V(2 * z_loss) * (row.most + log(row.sum)) / row.sum;
  lanes.each(experts, [&](std::int64_t i) { dlogits[i] = dlogits[i] + factor * exp_nonpositive(V(logits[i] - row.most)); });
}

}  // namespace octet::ops
