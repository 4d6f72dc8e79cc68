#pragma once

#include <cstdint>

#include "octet/numerics/sigmoid.hpp"

namespace octet::ops {

// (1 + tanh(u)) / 2 is the logistic function of 2 u, which loses no digits where x is far below 0.
namespace gelu {
inline constexpr float slope = 0x1.988454p+0f;  // 2 sqrt(2 / pi)
inline constexpr float cubic = 0x1.2444f2p-4f;  // slope * 0.044715
inline constexpr float saturated = 16.0f;       // beyond it gelu is x or 0, and x^3 might overflow
}  // namespace gelu

/// 2 u and its derivative, for x within +-saturated.
template <class V>
struct GeluArgument {
  V value, slope;
};
template <class V>
OCTET_HD GeluArgument<V> gelu_argument(V x) {
  x = smaller(larger(x, V{} - gelu::saturated), V{} + gelu::saturated);
  const V square = x * x;
  return {x * (square * gelu::cubic + gelu::slope), square * gelu::cubic * 3.0f + gelu::slope};
}

/// One row of GELU. X is the source of loads: a pointer, or a row of codes. Formulas in gelu.hpp.
template <class Lanes, class X, class Y>
OCTET_HD void gelu_row(Lanes lanes, std::int64_t cols, X x, Y y) {
  using math::sigmoid;
  lanes.each(cols, [&](auto at) {
    const auto v = lanes.load(x, at);
    lanes.store(y, at, v * sigmoid(gelu_argument(v).value).value);
  });
}

/// One row of its backward.
template <class Lanes, class D, class X, class Y>
OCTET_HD void gelu_backward_row(Lanes lanes, std::int64_t cols, const D* dy, X x, Y dx) {
  using math::sigmoid;
  lanes.each(cols, [&](auto at) {
    const auto v = lanes.load(x, at);
    const auto u = gelu_argument(v);
    const auto s = sigmoid(u.value);
    lanes.store(dx, at, lanes.load(dy, at) * (s.value + v * (s.value * s.complement) * u.slope));
  });
}

}  // namespace octet::ops
