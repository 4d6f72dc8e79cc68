#pragma once

#include <cstdint>

#include "octet/numerics/sigmoid.hpp"

namespace octet::ops {

/// d, or 0 where x is above `most` (or, the next one, below `least`); a NaN in x changes nothing.
template <class V>
OCTET_HD V unless_above(V d, V x, V most) {
  return x > most ? V{} : d;
}
template <class V>
OCTET_HD V unless_below(V d, V x, V least) {
  return x < least ? V{} : d;
}

/// One row: y[c] = weight * silu(x[c]) * x[cols + c]. X is the source of loads. Formulas in weighted_swiglu.hpp; NaN is not clamped.
template <bool limited, class Lanes, class X, class Y>
OCTET_HD void weighted_swiglu_row(Lanes lanes, std::int64_t cols, float limit, float weight, X x, Y y) {
  using math::sigmoid;
  lanes.each(cols, [&](auto at) {
    auto gate = lanes.load(x, at), up = lanes.load(x + cols, at);
    using V = decltype(gate);
    if constexpr (limited) {
      const V most = V{} + limit, least = V{} - limit;
      gate = smaller(most, gate), up = larger(least, smaller(most, up));
    }
    lanes.store(y, at, gate * sigmoid(gate).value * up * weight);
  });
}

/// One row of its backward. dweight: lanes' values, to which dy * silu(gate) * up is added.
template <bool limited, class Lanes, class D, class X, class Y, class V>
OCTET_HD void weighted_swiglu_backward_row(Lanes lanes, std::int64_t cols, float limit, float weight, const D* dy, X x, Y dx, V& dweight) {
  using math::sigmoid;
  lanes.each(cols, [&](auto at) {
    const V gate0 = lanes.load(x, at), up0 = lanes.load(x + cols, at), d = lanes.load(dy, at);
    V gate = gate0, up = up0;
    if constexpr (limited) {
      const V most = V{} + limit, least = V{} - limit;
      gate = smaller(most, gate), up = larger(least, smaller(most, up));
    }
    const auto s = sigmoid(gate);
    const V silu = gate * s.value, da = d * weight;
    dweight = dweight + d * (silu * up);
    V dgate = da * up * (s.value * (1.0f + gate * s.complement)), dup = da * silu;
    if constexpr (limited) {
      const V most = V{} + limit, least = V{} - limit;
      dgate = unless_above(dgate, gate0, most), dup = unless_above(unless_below(dup, up0, least), up0, most);
    }
    lanes.store(dx, at, dgate);
    lanes.store(dx + cols, at, dup);
  });
}

}  // namespace octet::ops
