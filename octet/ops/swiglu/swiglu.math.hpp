#pragma once

#include <cstdint>

#include "octet/numerics/sigmoid.hpp"

namespace octet::ops {

/// One row of SwiGLU: y[c] = silu(x[c]) * x[cols + c], cols values. X is the source of loads: a pointer, or a row of codes.
/// Formulas in swiglu.hpp.
template <class Lanes, class X, class Y>
OCTET_HD void swiglu_row(Lanes lanes, std::int64_t cols, X x, Y y) {
  using math::sigmoid;
  lanes.each(cols, [&](auto at) {
    const auto gate = lanes.load(x, at);
    lanes.store(y, at, gate * sigmoid(gate).value * lanes.load(x + cols, at));
  });
}

/// One row of its backward.
template <class Lanes, class D, class X, class Y>
OCTET_HD void swiglu_backward_row(Lanes lanes, std::int64_t cols, const D* dy, X x, Y dx) {
  using math::sigmoid;
  lanes.each(cols, [&](auto at) {
    const auto gate = lanes.load(x, at), d = lanes.load(dy, at);
    const auto s = sigmoid(gate);
    lanes.store(dx, at, d * lanes.load(x + cols, at) * (s.value * (1.0f + gate * s.complement)));
    lanes.store(dx + cols, at, d * (gate * s.value));
  });
}

}  // namespace octet::ops
