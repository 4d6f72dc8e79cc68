#pragma once

#include <cmath>
#include <type_traits>

#include "octet/numerics/value.hpp"

// exp, log, tanh, sin, cos and sqrt for ops. Octet has its own, because libm and CUDA differ in the last bits. The same
// input gives the same bits in every lane, on every instruction set and backend (only the payload of a NaN may differ), as long as the
// compiler neither contracts a * b + c nor reorders: -ffp-contract=off, nvcc -fmad=false. Every step is one IEEE operation in the order
// written, a fused multiply-add only where the formula has one; subnormals are kept. The bounds hold over the whole range and are proved
// against long double in math.test.cpp; polynomials are minimax fits, their coefficients rounded one after the other, reductions are Cody
// and
// Waite's: the leading constants are so short that their products with the integer n are exact. Source of the method: Muller 2016,
// "Elementary Functions", chapters 3 and 11.
//
// A formula that shall also run on double (a reference) or a dual number (its derivative) calls them unqualified:
//   using math::exp;
//   return x / (1.0f + exp(-x));

namespace octet::math {

/// A float or a GCC vector of floats.
template <class V>
concept Lanes = std::is_same_v<V, float> ||(!std::is_scalar_v<V> && !std::is_class_v<V> && !std::is_union_v<V>);

namespace detail {
inline constexpr float shifter = 0x1.8p23f;  // x + shifter - shifter is x rounded to an integer, for |x| <= 2^22

/// The value of c[0] + c[1] x + ... , Horner's rule.
template <class V, int N>
OCTET_HD constexpr V polynomial(V x, const float (&c)[N]) {
  V sum = splat<V>(c[N - 1]);
  for (int i = N - 2; i >= 0; --i) sum = fused_multiply_add(sum, x, splat<V>(c[i]));
  return sum;
}

/// x where it is not below `bound`; NaN stays.
template <class V>
OCTET_HD constexpr V at_least(V x, V bound) {
#ifdef __CUDA_ARCH__
  if constexpr (lanes_of<V> == 1) {
    float most = 0;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(most) : "f"(x), "f"(bound));
    return most;
  }
#endif
  return bound > x ? bound : x;  // in this order one maximum of a CPU
}
/// x where it is not above `bound`; NaN stays.
template <class V>
OCTET_HD constexpr V at_most(V x, V bound) {
#ifdef __CUDA_ARCH__
  if constexpr (lanes_of<V> == 1) {
    float least = 0;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(least) : "f"(x), "f"(bound));
    return least;
  }
#endif
  return bound < x ? bound : x;
}

/// e^x = power * 2^n. n is in the low bits of `shifted`, plus the offset.
template <class V>
struct ExpParts {
  V power;
  IntOf<V> shifted;
};
template <Lanes V>
OCTET_HD constexpr ExpParts<V> exp_parts(V x, float offset) {
  // The last bits of these are searched, over all floats, for the least error of the whole: 0.987 ulp.
  constexpr float c[] = {0x1.000002p-1f, 0x1.55549ep-3f, 0x1.55575ep-5f, 0x1.123d1ep-7f, 0x1.6a4c24p-10f};
  const V shifted = fused_multiply_add(x, splat<V>(0x1.715476p0f), splat<V>(shifter + offset));  // n = x / ln 2
  const V n = shifted - (shifter + offset);
  const V r = fused_multiply_add(n, splat<V>(0x1.e8082ep-16f), V(fused_multiply_add(n, splat<V>(-0x1.62e8p-1f), x)));
  return {fused_multiply_add(V(r * r), polynomial(r, c), r) + 1.0f, int_of(shifted)};
}
}  // namespace detail

/// e^x within 1 ulp; above 88.72 infinity, below -103.97 zero, in between gradual underflow; NaN stays.
template <Lanes V>
OCTET_HD constexpr V exp(V x) {
  x = detail::at_least(detail::at_most(x, splat<V>(89.0f)), splat<V>(-104.0f));
  const auto parts = detail::exp_parts(x, 0);
  const IntOf<V> exponent = parts.shifted - 0x4B400000;
  const IntOf<V> half = exponent >> 1;  // 2^n in two steps: n reaches from -150 to 128
  return parts.power * value_of<V>(IntOf<V>((half + 127) << 23)) * value_of<V>(IntOf<V>((exponent - half + 127) << 23));
}

/// exp(x) where x <= 0 or NaN: the same bits in fewer steps.
template <Lanes V>
OCTET_HD constexpr V exp_nonpositive(V x) {
  // 2^n = 2^(n + 65) * 2^-65, of which only the last product can round. The offset leaves n + 65 + 127 alone in the low bits.
  const auto parts = detail::exp_parts(detail::at_least(x, splat<V>(-104.0f)), 192);
  return parts.power * value_of<V>(IntOf<V>(parts.shifted << 23)) * 0x1p-65f;
}

/// e^x within (3 + |x| / 4) 2^-24 of itself in few steps; beyond |x| = 86, that of 86 or -86; NaN stays. The result is no subnormal, and
/// neither is its reciprocal.
template <Lanes V>
OCTET_HD constexpr V exp_within_86(V x) {
  constexpr float c[] = {1.0f, 0x1.62e42ap-1f, 0x1.ebf9c2p-3f, 0x1.c6b6dap-5f, 0x1.3ce8b2p-7f, 0x1.5bd97cp-10f};  // 2^f for |f| <= 1/2
  x = detail::at_least(detail::at_most(x, splat<V>(86.0f)), splat<V>(-86.0f));
  const V per_two = splat<V>(0x1.715476p0f);
  const V shifted = fused_multiply_add(x, per_two, splat<V>(detail::shifter + 127));  // n = x / ln 2; n + 127 is in the low bits
  const V f = fused_multiply_add(x, per_two, V(-(shifted - (detail::shifter + 127))));
  return detail::polynomial(f, c) * value_of<V>(IntOf<V>(int_of(shifted) << 23));
}
/// The natural logarithm within 1 ulp; 0 gives -infinity, below zero NaN.
template <Lanes V>
OCTET_HD constexpr V log(V x) {
  constexpr float c[] = {0x1.555554p-2f, -0x1.000226p-2f, 0x1.99a01ep-3f, -0x1.54728cp-3f,
                         0x1.22d8fap-3f, -0x1.0d81f6p-3f, 0x1.056016p-3f, -0x1.38ceb6p-4f};
  constexpr std::uint32_t sqrt_half = 0x3F3504F3u;
  const auto subnormal = x < 0x1p-126f;
  const BitsOf<V> bits = bits_of(V(subnormal ? x * 0x1p23f : x));  // unsigned: below zero the differences wrap
  const IntOf<V> exponent = IntOf<V>(bits - sqrt_half) >> 23;      // x = 2^exponent (1 + f), 1 + f in [sqrt 1/2, sqrt 2)
  const V f = value_of<V>(BitsOf<V>(bits - BitsOf<V>(exponent << 23))) - 1.0f;
  const V n = to_float(exponent) - (subnormal ? splat<V>(23.0f) : splat<V>(0.0f));
  const V square = f * f;
  V result = f * square * detail::polynomial(f, c) + n * -0x1.e8082ep-16f;
  result = (f + (result - square * 0.5f)) + n * 0x1.62e8p-1f;
  result = x > 0x1.fffffep127f ? x : result;
  result = x > 0.0f ? result : splat<V>(__builtin_nanf(""));
  result = x == 0.0f ? splat<V>(-__builtin_inff()) : result;
  return x != x ? x : result;
}

/// The hyperbolic tangent within 2 ulp.
template <Lanes V>
OCTET_HD constexpr V tanh(V x) {
  constexpr float c[] = {-0x1.555532p-2f, 0x1.1107p-3f, -0x1.b837ep-5f, 0x1.520c26p-6f, -0x1.7574f8p-8f};
  const V size = magnitude(x), square = x * x;
  const V near = size * square * detail::polynomial(square, c) + size;
  const V far = 1.0f - 2.0f / (exp(V(size + size)) + 1.0f);
  const IntOf<V> sign = int_of(x) & std::int32_t(0x80000000);
  return value_of<V>(IntOf<V>(int_of(V(size < 0.625f ? near : far)) | sign));
}

template <class V>
struct SinCos {
  V sin, cos;
};
/// Both at once, each within 1e-7 of the exact value (and sine within 2 ulp up to pi / 4), for |x| <= 2^20; NaN beyond, infinity
/// included: a rotary angle is a position times at most 1.
template <Lanes V>
OCTET_HD constexpr SinCos<V> sin_cos(V x) {
  constexpr float s[] = {-0x1.555556p-3f, 0x1.11115cp-7f, -0x1.a03b9ep-13f, 0x1.73ce5cp-19f};
  constexpr float c[] = {0x1.55553ep-5f, -0x1.6c05a4p-10f, 0x1.983d3p-16f};
  x = magnitude(x) <= 0x1p20f ? x : splat<V>(__builtin_nanf(""));
  const V shifted = x * 0x1.45f306p-1f + detail::shifter;  // n = x / (pi / 2), up to 20 bits; |r| <= 0.884, see below
  const V n = shifted - detail::shifter;
  const V upper = ((n * 0x1p-10f + detail::shifter) - detail::shifter) * 0x1p10f, lower = n - upper;  // 10 bits each
  V r = (x - upper * 0x1.922p0f) - lower * 0x1.922p0f;
  r = r - upper * -0x1.2afp-18f;
  r = r - (lower * -0x1.2afp-18f + (upper * 0x1.0b4p-34f + (lower * 0x1.0b4p-34f + n * 0x1.84698ap-48f)));

  const V square = r * r;
  const V sine = r * square * detail::polynomial(square, s) + r;
  const V cosine = square * square * detail::polynomial(square, c) - square * 0.5f + 1.0f;
  const IntOf<V> quadrant = int_of(shifted);  // its last two bits
  const IntOf<V> sine_sign = (quadrant & 2) << 30, cosine_sign = ((quadrant + 1) & 2) << 30;
  const auto swapped = (quadrant & 1) != 0;
  return {value_of<V>(IntOf<V>(int_of(V(swapped ? cosine : sine)) ^ sine_sign)),
          value_of<V>(IntOf<V>(int_of(V(swapped ? sine : cosine)) ^ cosine_sign))};
}
template <Lanes V>
OCTET_HD constexpr V sin(V x) {
  return sin_cos(x).sin;
}
template <Lanes V>
OCTET_HD constexpr V cos(V x) {
  return sin_cos(x).cos;
}

/// The square root, correctly rounded.
template <Lanes V>
OCTET_HD constexpr V sqrt(V x) {
#ifdef __CUDA_ARCH__
  return __fsqrt_rn(x);
#else
  if constexpr (lanes_of<V> == 1) {
    return __builtin_sqrtf(x);
  } else {
    for (int i = 0; i < lanes_of<V>; ++i) x[i] = __builtin_sqrtf(x[i]);
    return x;
  }
#endif
}

/// On double, for references: libm's.
OCTET_HD double exp(double x) { return ::exp(x); }
template <class V>
OCTET_HD constexpr V exp_nonpositive(V x) requires(!Lanes<V>) {
  return exp(x);
}  // and on dual numbers
template <class V>
OCTET_HD constexpr V exp_within_86(V x) requires(!Lanes<V>) {
  return exp(x);
}
OCTET_HD double log(double x) { return ::log(x); }
OCTET_HD double tanh(double x) { return ::tanh(x); }
OCTET_HD double sin(double x) { return ::sin(x); }
OCTET_HD double cos(double x) { return ::cos(x); }
OCTET_HD double sqrt(double x) { return ::sqrt(x); }
OCTET_HD SinCos<double> sin_cos(double x) { return {::sin(x), ::cos(x)}; }

}  // namespace octet::math
