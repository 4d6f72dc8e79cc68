#pragma once

#include "octet/numerics/formats.hpp"

// Stochastic rounding of lanes with 16 random bits per value: the bits that one Philox counter has for eight values (see philox.hpp). The
// mean over all draws is x to 2^-16 of a step of an 8-bit format, and to 2^-13 of one of FP16, which takes the upper 13 bits of a draw.
// encode_stochastic() is the same with 32 bits.

namespace octet {

namespace detail {
/// float -> int32 towards zero, per lane; for values that int32 holds.
OCTET_HD constexpr std::int32_t whole_steps(float x) { return std::int32_t(x); }
#ifndef __CUDACC__
template <class V>
OCTET_HD auto whole_steps(V x) requires(sizeof(V) > 4) {
  return __builtin_convertvector(x, IntOf<V>);
}
#endif

/// The code of a magnitude, given by its bits, in a format of these bits; without saturation. random: 0 .. 65535.
template <int mantissa_bits, int bias, class V>
OCTET_HD constexpr IntOf<V> drawn_magnitude(IntOf<V> size, IntOf<V> random) {
  constexpr int drop = 23 - mantissa_bits, used = drop < 16 ? drop : 16;  // bits of a draw
  constexpr std::int32_t min_normal = std::int32_t(127 - bias + 1) << 23;
  constexpr float parts_per_one = float_of(std::uint32_t(127 + mantissa_bits + bias - 1 + used) << 23);  // 2^-used of a subnormal step
  using Int = IntOf<V>;
  const Int draw = random >> (16 - used);
  const Int normal = ((size + (draw << (drop - used))) >> drop) - (std::int32_t(127 - bias) << mantissa_bits);
  const V tiny = value_of<V>(Int(size < min_normal ? size : Int{}));
  const Int subnormal = (whole_steps(V(tiny * parts_per_one)) + draw) >> used;
  return size < min_normal ? subnormal : normal;
}
}  // namespace detail

/// The code in the low 8 bits of each lane. Beyond Format::max it is the largest finite code; any NaN becomes nan_code.
template <class Format, class V>
OCTET_HD constexpr IntOf<V> encode_drawn_lanes(V x, IntOf<V> random) {
  using Int = IntOf<V>;
  const Int size = int_of(x) & 0x7FFFFFFF, sign = (int_of(x) >> 24) & 0x80;
  constexpr std::int32_t most = std::int32_t(bits_of(Format::max));
  const Int inside = size < most ? size : Int{} + most;  // rounding never leaves the format
  const Int code = detail::drawn_magnitude<Format::mantissa_bits, Format::bias, V>(inside, size < most ? random : Int{}) | sign;
  return size > 0x7F800000 ? Int{} + std::int32_t(Format::nan_code) : code;
}

/// The FP16 number in the low 16 bits of each lane. Beyond 65504 it is that; infinity and NaN stay.
template <class V>
OCTET_HD constexpr IntOf<V> encode_fp16_drawn_lanes(V x, IntOf<V> random) {
  using Int = IntOf<V>;
  const Int size = int_of(x) & 0x7FFFFFFF, sign = (int_of(x) >> 16) & 0x8000;
  constexpr std::int32_t most = std::int32_t(bits_of(Fp16::max));
  const Int inside = size < most ? size : Int{} + most;
  Int code = detail::drawn_magnitude<10, 15, V>(inside, size < most ? random : Int{});
  code = size >= 0x7F800000 ? (size > 0x7F800000 ? Int{} + 0x7E00 : Int{} + 0x7C00) : code;
  return code | sign;
}

}  // namespace octet
