#pragma once

#include <cstdint>
#include <type_traits>

#include "octet/numerics/value.hpp"

namespace octet {

/// 8-bit float with 4 exponent and 3 mantissa bits; no infinities ("fn"). Source: OCP FP8 1.0, table 1.
struct E4M3 {
  static constexpr int mantissa_bits = 3, bias = 7;
  static constexpr float max = 448.0f;
  static constexpr float nearest_to_max = 464.0f;  // the largest float that would round to max in a format without limit
  static constexpr float min_normal = 0x1p-6f, min_subnormal = 0x1p-9f;
  static constexpr std::uint8_t max_code = 0x7E, nan_code = 0x7F;
  static constexpr bool has_infinity = false;
};

/// 8-bit float with 5 exponent and 2 mantissa bits; has infinities. Source: OCP FP8 1.0, table 1.
struct E5M2 {
  static constexpr int mantissa_bits = 2, bias = 15;
  static constexpr float max = 57344.0f;
  static constexpr float nearest_to_max = 0x1.dffffep15f;  // half way, 61440, goes to even, beyond
  static constexpr float min_normal = 0x1p-14f, min_subnormal = 0x1p-16f;
  static constexpr std::uint8_t max_code = 0x7B, nan_code = 0x7F;
  static constexpr bool has_infinity = true;
};

/// The code nearest to x, ties to even, in the low 8 bits of each lane. Beyond Format::max, infinity included, it is the largest
/// finite code (satfinite); any NaN becomes nan_code, its sign dropped, as in cuda_fp8.h.
template <class Format, class V>
OCTET_HD constexpr IntOf<V> encode_lanes(V x) {
  constexpr int drop = 23 - Format::mantissa_bits;
  constexpr std::int32_t min_normal = std::int32_t(127 - Format::bias + 1) << 23;
  constexpr std::int32_t align = std::int32_t(127 - Format::bias + 1 + drop) << 23;
  constexpr std::int32_t rebias = std::int32_t(127 - Format::bias) << Format::mantissa_bits;

  using Int = IntOf<V>;
  using Bits = BitsOf<V>;
  const Int bits = int_of(x);
  const Int size = bits & 0x7FFFFFFF;
  const Int sign = (bits >> 24) & 0x80;
  const Int subnormal = int_of(V(value_of<V>(size) + float_of(align))) - align;                         // the float adder does the rounding
  const Bits rounded = (Bits(size) + ((1u << (drop - 1)) - 1u) + ((Bits(size) >> drop) & 1u)) >> drop;  // unsigned: a NaN may carry over
  const Int normal = Int(rounded) - rebias;
  Int code = size < min_normal ? subnormal : normal;
  code = size >= std::int32_t(bits_of(Format::max)) ? Int{} + std::int32_t(Format::max_code) : code;
  code = code | sign;
  return size > 0x7F800000 ? Int{} + std::int32_t(Format::nan_code) : code;
}

template <class Format>
OCTET_HD constexpr std::uint8_t encode(float x) {
  return std::uint8_t(encode_lanes<Format>(x));
}

/// The value of the code in the low 8 bits of each lane. Exact: every code is a BF16, FP16 and FP32 number.
template <class Format, class V>
OCTET_HD constexpr V decode_lanes(IntOf<V> code) {
  constexpr int m = Format::mantissa_bits;
  using Int = IntOf<V>;
  const Int size = code & 0x7F;
  const Int sign = (code & 0x80) << 24;
  const Int normal = (size << (23 - m)) + (std::int32_t(127 - Format::bias) << 23);
  const V subnormal = to_float(size) * Format::min_subnormal;
  Int bits = size < (1 << m) ? int_of(subnormal) : normal;
  if constexpr (Format::has_infinity) bits = size > Format::max_code ? ((size - (Format::max_code + 1)) << (23 - m)) + 0x7F800000 : bits;
  else bits = size > Format::max_code ? Int{} + 0x7FC00000 : bits;
  return value_of<V>(Int(bits | sign));
}

template <class Format>
OCTET_HD constexpr float decode(std::uint8_t code) {
  return decode_lanes<Format, float>(std::int32_t(code));
}

static_assert(encode<E4M3>(448.0f) == 0x7E && encode<E4M3>(1e9f) == 0x7E && encode<E5M2>(1e9f) == 0x7B);
static_assert(encode<E4M3>(1.0625f) == encode<E4M3>(1.0f), "ties go to even");
static_assert(decode<E4M3>(0x7E) == 448.0f && decode<E5M2>(0x01) == 0x1p-16f);

/// Power of two with 8 exponent bits, no sign, no zero: value 2^(code - 127); 0xFF is NaN. Source: OCP MX 1.0, section 5.4.1.
struct E8M0 {
  static constexpr std::uint8_t nan_code = 0xFF, max_code = 0xFE;
};

/// The smallest E8M0 not below x >= 0 (rounded up, so that dividing by it never overflows): 0 -> 2^-127, above 2^127 -> 2^127,
/// NaN -> NaN. Source: recipe MXFP8 of Transformer Engine, which is cvt.rp.satfinite.ue8m0x2.f32 on Blackwell.
OCTET_HD constexpr std::uint8_t encode_e8m0(float x) {
  const std::uint32_t bits = bits_of(x), exponent = (bits >> 23) & 0xFF, mantissa = bits & 0x7FFFFF;
  if (exponent == 0xFF) return mantissa != 0 ? E8M0::nan_code : E8M0::max_code;
  const bool up = mantissa != 0 && exponent != 0xFE && !(exponent == 0 && mantissa <= 0x400000);
  return std::uint8_t(exponent + (up ? 1 : 0));
}
/// 2^(code - 127).
OCTET_HD constexpr float decode_e8m0(std::uint8_t code) {
  return code == 0xFF ? float_of(0x7FC00000) : code == 0 ? float_of(0x00400000) : float_of(std::uint32_t(code) << 23);
}
/// bfloat16: the upper half of a float. NaN stays NaN (quiet), overflow rounds to infinity.
struct Bf16 {
  std::uint16_t bits;
};
/// Nearest even, in the low 16 bits of each lane.
template <class V>
OCTET_HD constexpr IntOf<V> encode_bf16_lanes(V x) {
  using Bits = BitsOf<V>;
  const Bits bits = bits_of(x);
  const Bits rounded = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
  const Bits quiet = (bits >> 16) | 0x40u;
  return __builtin_bit_cast(IntOf<V>, Bits((int_of(x) & 0x7FFFFFFF) > 0x7F800000 ? quiet : rounded));
}
template <class V>
OCTET_HD constexpr V decode_bf16_lanes(IntOf<V> bits) {
  return value_of<V>(IntOf<V>(bits << 16));
}
OCTET_HD constexpr Bf16 to_bf16(float x) { return {std::uint16_t(encode_bf16_lanes(x))}; }
OCTET_HD constexpr float to_float(Bf16 x) { return float_of(std::uint32_t(x.bits) << 16); }
/// x after a round trip through BF16.
template <class V>
OCTET_HD constexpr V round_to_bf16(V x) {
  return decode_bf16_lanes<V>(encode_bf16_lanes(x));
}

/// IEEE binary16. Overflow rounds to infinity, NaN becomes quiet, both ways, as with the F16C instructions.
struct Fp16 {
  static constexpr float max = 65504.0f;
  std::uint16_t bits;
};
OCTET_HD constexpr Fp16 to_fp16(float x) {
  constexpr std::uint32_t align = std::uint32_t(127 - 15 + 1 + 13) << 23;
  const std::uint32_t size = bits_of(x) & 0x7FFFFFFFu, sign = (bits_of(x) >> 16) & 0x8000u;
  if (size > 0x7F800000u) return {std::uint16_t(sign | 0x7E00u | ((size >> 13) & 0x3FFu))};
  if (size >= 0x477FF000u) return {std::uint16_t(sign | 0x7C00u)};  // 65520 and above
  if (size < 0x38800000u) return {std::uint16_t(sign | (bits_of(float_of(size) + float_of(align)) - align))};
  return {std::uint16_t(sign | (((size + 0xFFFu + ((size >> 13) & 1u)) >> 13) - (std::uint32_t(127 - 15) << 10)))};
}
/// x as T, rounded to nearest even.
template <class T>
OCTET_HD constexpr T from_float(float x) {
  if constexpr (std::is_same_v<T, Fp16>) return to_fp16(x);
  else if constexpr (std::is_same_v<T, Bf16>) return to_bf16(x);
  else return x;
}
OCTET_HD constexpr float to_float(Fp16 h) {
  const std::uint32_t size = h.bits & 0x7FFFu, sign = std::uint32_t(h.bits & 0x8000u) << 16;
  if (size > 0x7C00u) return float_of(sign | 0x7FC00000u | ((size & 0x3FFu) << 13));
  if (size == 0x7C00u) return float_of(sign | 0x7F800000u);
  if (size < 0x400u) return float_of(sign | bits_of(float(size) * 0x1p-24f));
  return float_of(sign | ((size << 13) + (std::uint32_t(127 - 15) << 23)));
}

}  // namespace octet
