#pragma once

#include "octet/numerics/math.hpp"

namespace octet::math {

template <class V>
struct Sigmoid {
  V value, complement;  // s(x) = 1 / (1 + e^-x), and 1 - s(x) without its cancellation
};

/// 1 / x for 1 <= x < 2^126, correctly rounded; NaN stays.
template <class V>
OCTET_HD constexpr V reciprocal_from_one(V x) {
#ifdef __CUDA_ARCH__
  // The compiler's code for 1 / x, without its checks for subnormal divisors and reciprocals.
  if constexpr (std::is_same_v<V, float>) {
    float r = 0;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
    return fmaf(-fmaf(x, r, -1.0f), r, r);
  }
#endif
  return 1.0f / x;
}

/// The logistic function of a float, a vector of floats or a dual number; both parts within (6 + |x| / 4) 2^-24 of their size, but 0 where
/// that is below e^-86 = 2^-124. NaN stays.
template <class V>
OCTET_HD constexpr Sigmoid<V> sigmoid(V x) {
  const V t = exp_within_86(V(-x)), value = reciprocal_from_one(V(1.0f + t)), complement = t * value;
  return {x < -86.0f ? V{} : value, x > 86.0f ? V{} : complement};
}

}  // namespace octet::math
