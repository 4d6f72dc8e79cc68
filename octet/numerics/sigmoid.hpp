#pragma once

#include "octet/numerics/math.hpp"

namespace octet::math {

template <class V>
struct Sigmoid {
  V value, complement;  // s(x) = 1 / (1 + e^-x), and 1 - s(x) without its cancellation
};

/// The logistic function of a float, a vector of floats or a dual number; both parts within 6 * 2^-24 of their size where they are
/// normal floats. NaN stays. It raises e only to powers below 0, so nothing overflows.
template <class V>
OCTET_HD constexpr Sigmoid<V> sigmoid(V x) {
  const V t = exp(V(-magnitude(x)));
  const V near = 1.0f / (1.0f + t), far = t * near;
  return {x < 0.0f ? far : near, x < 0.0f ? near : far};
}

}  // namespace octet::math
