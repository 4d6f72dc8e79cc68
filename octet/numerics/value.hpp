#pragma once

#include <cstdint>

#include "octet/base/hd.hpp"

// The scalar math of Octet is written once for two kinds of value: a float (CUDA threads, references, tests) and a CPU register of
// floats (GCC vector extension). Both understand + - * / & | ^ << >> < and ?:, so a formula reads the same; this header names the rest.

namespace octet {

namespace detail {
template <class V>
struct ValueTypes {  // a GCC vector of float
  static constexpr int lanes = int(sizeof(V) / sizeof(float));
  typedef std::int32_t Int __attribute__((vector_size(sizeof(V))));
  typedef std::uint32_t Bits __attribute__((vector_size(sizeof(V))));
};
template <>
struct ValueTypes<float> {
  static constexpr int lanes = 1;
  using Int = std::int32_t;
  using Bits = std::uint32_t;
};
}  // namespace detail

template <class V>
using IntOf = typename detail::ValueTypes<V>::Int;  // int32 per lane
template <class V>
using BitsOf = typename detail::ValueTypes<V>::Bits;  // uint32 per lane
template <class V>
inline constexpr int lanes_of = detail::ValueTypes<V>::lanes;

template <class V>
OCTET_HD constexpr BitsOf<V> bits_of(V x) {
  return __builtin_bit_cast(BitsOf<V>, x);
}
template <class V>
OCTET_HD constexpr IntOf<V> int_of(V x) {
  return __builtin_bit_cast(IntOf<V>, x);
}
template <class V>
OCTET_HD constexpr V value_of(BitsOf<V> bits) {
  return __builtin_bit_cast(V, bits);
}
template <class V>
OCTET_HD constexpr V value_of(IntOf<V> bits) {
  return __builtin_bit_cast(V, bits);
}
OCTET_HD constexpr float float_of(std::uint32_t bits) { return __builtin_bit_cast(float, bits); }

/// Every lane holds x. (0 is subtracted, not added: that keeps -0, so the compiler drops it and broadcasts.)
template <class V>
OCTET_HD constexpr V splat(float x) {
  return x - V{};
}

/// a * b + c with one rounding: one instruction on every backend, and where a processor lacks it, the same bits from libm.
OCTET_HD constexpr float fused_multiply_add(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
#ifndef __CUDACC__
template <class V>
OCTET_HD V fused_multiply_add(V a, V b, V c) requires(sizeof(V) > 4) {
  for (int i = 0; i < lanes_of<V>; ++i) a[i] = __builtin_fmaf(a[i], b[i], c[i]);
  return a;
}
#endif

/// |x|, NaN included.
template <class V>
OCTET_HD constexpr V magnitude(V x) {
  return value_of<V>(int_of(x) & 0x7FFFFFFF);
}

/// The larger one; where x is NaN, `most`: so a running maximum most = larger(x, most) ignores NaN.
template <class V>
OCTET_HD constexpr V larger(V x, V most) {
  return x > most ? x : most;
}
template <class V>
OCTET_HD constexpr V smaller(V x, V least) {
  return x < least ? x : least;
}

/// int32 -> float, per lane.
OCTET_HD constexpr float to_float(std::int32_t i) { return float(i); }
#ifndef __CUDACC__
template <class I>
OCTET_HD auto to_float(I i) requires(sizeof(I) > 4) {
  typedef float V __attribute__((vector_size(sizeof(I))));
  return __builtin_convertvector(i, V);
}
#endif

}  // namespace octet
