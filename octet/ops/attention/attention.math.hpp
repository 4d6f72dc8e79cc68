#pragma once

#include <cstdint>

#include "octet/numerics/math.hpp"

namespace octet::ops {

/// The sum and the maximum that make a row of exponentials a softmax.
template <class S>
struct RowExponentials {
  S most, sum;
};

/// s <- exp(s - most), for a row of n scores.
template <class Lanes, class S>
OCTET_HD auto exponentials_row(Lanes lanes, std::int64_t n, S* s) {
  using math::exp;
  using Value = typename Lanes::Value;
  Value most = Value{} - __builtin_inff(), sum{};
  lanes.each(n, [&](auto at) { most = larger(Value(lanes.within(lanes.load(s, at), at, -__builtin_inff())), most); });
  const auto top = lanes.max(most);
  lanes.each(n, [&](auto at) {
    const Value e = exp(Value(lanes.load(s, at) - top));
    lanes.store(s, at, e);
    sum = sum + lanes.within(e, at);
  });
  const auto total = lanes.sum(sum);
  return RowExponentials<decltype(top + total)>{top, total};
}

/// sum_c x[c] y[c].
template <class Lanes, class X, class Y>
OCTET_HD auto dot_row(Lanes lanes, std::int64_t n, const X* x, const Y* y) {
  typename Lanes::Value products{};
  lanes.each(n, [&](auto at) { products = products + lanes.load(x, at) * lanes.load(y, at); });
  return lanes.sum(products);
}

/// A row of n scores and of dp[j] = sum_c do[c] v[j, c] becomes p = exp(s - lse) and ds = p (dp - delta).
template <class Lanes, class S, class Row>
OCTET_HD void attention_backward_row(Lanes lanes, std::int64_t n, Row lse, Row delta, S* s_to_p, S* dp_to_ds) {
  using math::exp;
  using Value = typename Lanes::Value;
  lanes.each(n, [&](auto at) {
    const Value p = exp(Value(lanes.load(s_to_p, at) - lse));
    lanes.store(s_to_p, at, p);
    lanes.store(dp_to_ds, at, p * (lanes.load(dp_to_ds, at) - delta));
  });
}

}  // namespace octet::ops
