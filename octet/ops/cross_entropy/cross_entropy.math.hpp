#pragma once

#include <cstdint>

#include "octet/numerics/math.hpp"

namespace octet::ops {

/// The statistics of a row of logits x for its softmax: p[v] = exp(x[v] - most) / sum.
template <class S>
struct RowSoftmax {
  S most, sum;
};
template <class Lanes, class X>
OCTET_HD auto row_softmax(Lanes lanes, std::int64_t vocabulary, const X* x) {
  using math::exp_nonpositive;
  using Value = typename Lanes::Value;
  Value most = Value{} - __builtin_inff(), sum{};
  lanes.each(vocabulary, [&](auto at) { most = larger(Value(lanes.within(lanes.load(x, at), at, -__builtin_inff())), most); });
  const auto top = lanes.max(most);
  lanes.each(vocabulary, [&](auto at) { sum = sum + lanes.within(exp_nonpositive(Value(lanes.load(x, at) - top)), at); });
  const auto total = lanes.sum(sum);
  return RowSoftmax<decltype(top + total)>{top, total};
}

/// A row whose columns have several owners: the statistics of all columns, and the target's logit. parts: [owners, rows, 3], `row` one of
/// the rows.
struct JoinedRow {
  RowSoftmax<float> softmax;
  float logit;
};
OCTET_HD JoinedRow joined_row(const float* parts, std::int64_t owners, std::int64_t rows, std::int64_t row) {
  JoinedRow out{{-__builtin_inff(), 0}, __builtin_nanf("")};
  for (std::int64_t i = 0; i < owners; ++i) {
    const float *const p = parts + (i * rows + row) * 3, most = p[0];
    out.softmax.most = most > out.softmax.most ? most : out.softmax.most;
    if (p[2] == p[2]) out.logit = p[2];
  }
  for (std::int64_t i = 0; i < owners; ++i) {
    const float* const p = parts + (i * rows + row) * 3;
    out.softmax.sum += p[1] * math::exp_nonpositive(p[0] - out.softmax.most);
  }
  return out;
}

/// -log p[target]. The difference of two logits comes first: it is exact where they are near each other.
template <class S, class T>
OCTET_HD auto cross_entropy_loss(const RowSoftmax<S>& row, T logit) {
  using math::log;
  return log(row.sum) + (row.most - logit);
}

/// The factor of the gradient; loss_scale may be null.
OCTET_HD float gradient_factor(float gradient_scale, const float* loss_scale) {
  return loss_scale != nullptr ? gradient_scale * *loss_scale : gradient_scale;
}
/// That of one token; weights may be null.
OCTET_HD float gradient_factor(float gradient_scale, const float* loss_scale, const float* weights, std::int64_t token) {
  const float factor = gradient_factor(gradient_scale, loss_scale);
  return weights != nullptr ? factor * weights[token] : factor;
}

/// y = p * scale: the gradient except for the target's 1. y may be x.
template <class Lanes, class X, class Y, class S>
OCTET_HD void scaled_softmax(Lanes lanes, std::int64_t vocabulary, const RowSoftmax<S>& row, float scale, const X* x, Y* y) {
  using math::exp_nonpositive;
  using Value = typename Lanes::Value;
  const auto factor = scale / row.sum;
  lanes.each(vocabulary, [&](auto at) { lanes.store(y, at, exp_nonpositive(Value(lanes.load(x, at) - row.most)) * factor); });
}

}  // namespace octet::ops
