#pragma once

#include <cstdint>

#include "octet/numerics/sigmoid.hpp"
#include "octet/ops/gelu/gelu.math.hpp"
#include "octet/ops/swiglu/swiglu.hpp"

namespace octet::ops {

/// u of gate(g) = g * sigmoid(u), and its derivative. The choice is the same for all values of a call, so one loop has every gate.
template <class V>
OCTET_HD GeluArgument<V> gate_argument(Gate gate, V x) {
  if (gate == Gate::gelu) return gelu_argument(x);
  return {x, V{} + 1.0f};
}

/// One row: y[c] = gate(x[c]) * x[cols + c], cols values. X is the source of loads: a pointer, or a row of codes. Formulas in swiglu.hpp.
template <class Lanes, class X, class Y>
OCTET_HD void swiglu_row(Lanes lanes, std::int64_t cols, Gate function, X x, Y y) {
  using math::sigmoid;
  lanes.each(cols, [&](auto at) {
    const auto gate = lanes.load(x, at);
    lanes.store(y, at, gate * sigmoid(gate_argument(function, gate).value).value * lanes.load(x + cols, at));
  });
}

/// One row of its backward.
template <class Lanes, class D, class X, class Y>
OCTET_HD void swiglu_backward_row(Lanes lanes, std::int64_t cols, Gate function, const D* dy, X x, Y dx) {
  using math::sigmoid;
  lanes.each(cols, [&](auto at) {
    const auto gate = lanes.load(x, at), d = lanes.load(dy, at);
    const auto u = gate_argument(function, gate);
    const auto s = sigmoid(u.value);
    lanes.store(dx, at, d * lanes.load(x + cols, at) * (s.value * (1.0f + gate * u.slope * s.complement)));
    lanes.store(dx + cols, at, d * (gate * s.value));
  });
}

}  // namespace octet::ops
