#pragma once

#include "octet/numerics/math.hpp"

// Logarithms and powers to the base 2, for codes that store a power of a value: a few steps each, and the same bits on every backend as in
// math.hpp. Their errors are far below half a step of an 8-bit code (2^-4); power.test.cpp proves them.

namespace octet::math {

namespace detail {
/// fused_multiply_add() by one instruction also where the compiler would process a register lane by lane: between branches.
template <class V>
OCTET_HD constexpr V multiply_add(V a, V b, V c) {
#if !defined(__CUDACC__) && defined(__AVX512F__)
  if constexpr (lanes_of<V> == 16) return __builtin_ia32_vfmaddps512_mask(a, b, c, -1, 4);  // 4: rounding as the processor is set
#endif
#if !defined(__CUDACC__) && defined(__FMA__)
  if constexpr (lanes_of<V> == 8) return __builtin_ia32_vfmaddps256(a, b, c);
#endif
  return fused_multiply_add(a, b, c);
}
template <class V, int N>
OCTET_HD constexpr V short_polynomial(V x, const float (&c)[N]) {
  V sum = splat<V>(c[N - 1]);
  for (int i = N - 2; i >= 0; --i) sum = multiply_add(sum, x, splat<V>(c[i]));
  return sum;
}
}  // namespace detail

/// log2(x) of 0 < x < infinity, subnormals included, within 2^-20 + 2^-24 |log2(x)|.
template <Lanes V>
OCTET_HD constexpr V log2_positive(V x) {
  constexpr float c[] = {0x1.71548ep0f,  -0x1.7156ap-1f,  0x1.ec2a0cp-2f, -0x1.6ff99ep-2f,
                         0x1.2eba94p-2f, -0x1.13f974p-2f, 0x1.608508p-3f};  // log2(1 + f) / f
  constexpr std::uint32_t sqrt_half = 0x3F3504F3u;
  const auto subnormal = x < 0x1p-126f;
  const BitsOf<V> bits = bits_of(V(subnormal ? x * 0x1p23f : x));
  const IntOf<V> exponent = IntOf<V>(bits - sqrt_half) >> 23;  // x = 2^exponent (1 + f), 1 + f in [sqrt 1/2, sqrt 2)
  const V f = value_of<V>(BitsOf<V>(bits - BitsOf<V>(exponent << 23))) - 1.0f;
  const V n = to_float(exponent) - (subnormal ? splat<V>(23.0f) : splat<V>(0.0f));
  return detail::multiply_add(f, detail::short_polynomial(f, c), n);
}

/// 2^x within 2^-21 of itself; beyond |x| = 126, that of 126 or -126; NaN stays.
template <Lanes V>
OCTET_HD constexpr V exp2_within_126(V x) {
  constexpr float c[] = {1.0f, 0x1.62e42ap-1f, 0x1.ebf9c2p-3f, 0x1.c6b6dap-5f, 0x1.3ce8b2p-7f, 0x1.5bd97cp-10f};  // 2^f for |f| <= 1/2
  x = detail::at_least(detail::at_most(x, splat<V>(126.0f)), splat<V>(-126.0f));
  const V shifted = x + (detail::shifter + 127);  // n + 127 is in the low bits
  const V f = x - (shifted - (detail::shifter + 127));
  return detail::short_polynomial(f, c) * value_of<V>(IntOf<V>(int_of(shifted) << 23));
}

}  // namespace octet::math
