#pragma once

#include "octet/numerics/math.hpp"

namespace octet::math {

template <class V>
struct Sigmoid {
  V value, complement;  // s(x) = 1 / (1 + e^-x), and 1 - s(x) without its cancellation
};

/// 1 / x for 1 <= x <= 2, correctly rounded; NaN stays.
template <class V>
OCTET_HD constexpr V reciprocal_of_one_to_two(V x) {
#ifdef __CUDA_ARCH__
  // What the compiler makes of 1 / x, less its look at divisors that are far from 1.
  if constexpr (std::is_same_v<V, float>) {
    float r = 0;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
    return fmaf(-fmaf(x, r, -1.0f), r, r);
  }
#endif
  return 1.0f / x;
}

/// The logistic function of a float, a vector of floats or a dual number; both parts within 6 * 2^-24 of their size where they are
/// normal floats. NaN stays. It raises e only to powers below 0, so nothing overflows.
template <class V>
OCTET_HD constexpr Sigmoid<V> sigmoid(V x) {
  const V t = exp_nonpositive(V(-magnitude(x)));
  const V near = reciprocal_of_one_to_two(V(1.0f + t)), far = t * near;
  return {x < 0.0f ? far : near, x < 0.0f ? near : far};
}

}  // namespace octet::math
