#pragma once

#include "octet/numerics/scale.hpp"

// What quantizing does to a value and to a block's maximum, for one value or a register of them.

namespace octet::ops {

/// Up to this scale a code's value times a descale that is a power of two is a BF16 number: the descale leaves the value's bits as they
/// are unless it takes them below 2^-133, and the least code is 2^-16.
inline constexpr float largest_exact_scale = 0x1p100f;

/// How the maxima of a tensor's blocks become scales.
struct BlockRule {
  ScaleRule rule = ScaleRule::quotient;
  float format_max = 0;
  float overflow = 0;  // the scale where the quotient overflows: per tensor the largest float, per block the largest value of x's type
};

/// What a block's maximum gives: the factor before encoding, the one after decoding, and, by the e8m0 rule, the latter's code.
template <class V>
struct BlockScale {
  V scale, descale;
  IntOf<V> code;
};

/// The rules of numerics/scale.hpp on every lane; amax >= 0, never NaN.
template <class V>
OCTET_HD BlockScale<V> block_scale(V amax, const BlockRule& r) {
  using Int = IntOf<V>;
  const Int bits = int_of(amax);
  if (r.rule == ScaleRule::e8m0) {
    const Int x = int_of(V(amax * (1.0f / r.format_max)));
    const Int exponent = x >> 23, mantissa = x & 0x7FFFFF;
    // Rounded up, except where that would leave E8M0 or where 2^-127 is near enough.
    Int code = exponent + (mantissa > (exponent == 0 ? Int{} + 0x400000 : Int{}) ? Int{} + 1 : Int{});
    code = exponent >= 0xFE ? Int{} + std::int32_t(E8M0::max_code) : code;
    const Int inverse = (254 - code) << 23, value = code << 23;
    return {value_of<V>(code == 0xFE ? Int{} + 0x00400000 : inverse), value_of<V>(code == 0 ? Int{} + 0x00400000 : value), code};
  }
  V scale = r.format_max / amax;
  scale = int_of(scale) == 0x7F800000 ? splat<V>(r.overflow) : scale;
  if (r.rule == ScaleRule::power_of_two) scale = value_of<V>(Int(int_of(scale) & std::int32_t(0xFF800000)));
  scale = bits > 0 ? scale : splat<V>(1);
  scale = bits < 0x7F800000 ? scale : splat<V>(1);
  return {scale, 1.0f / scale, Int{}};
}

/// The codes of values that need neither saturation nor a NaN: |y| <= Format::nearest_to_max. The same as encode_lanes in half the
/// instructions. Adding c = 2^(e + 23 - mantissa bits), where e is y's exponent or that of the least normal code, leaves in the sum's low
/// bits |y| in units of its code's last place, rounded to nearest even by the adder; taking c away again leaves the code's value.
template <class Format, class V>
struct InRange {
  static constexpr int drop = 23 - Format::mantissa_bits;
  static constexpr std::int32_t least = std::int32_t(127 - Format::bias + 1) << 23;
  using Int = IntOf<V>;
  Int bits, exponent;
  V c, sum;

  OCTET_HD constexpr explicit InRange(V y) : bits(int_of(y)) {
    const Int floor = bits & 0x7F800000;
    exponent = floor > least ? floor : Int{} + least;
    c = value_of<V>(Int(exponent + (drop << 23)));
    sum = magnitude(y) + c;
  }
  OCTET_HD constexpr Int code() const {
    const Int size = int_of(sum) + (exponent >> drop) - (least >> drop);
    return (size & 0x7F) | ((bits >> 24) & 0x80);
  }
  /// |value| of the code, and the value: as decode_lanes gives them.
  OCTET_HD constexpr V size() const { return sum - c; }
  OCTET_HD constexpr V value() const { return value_of<V>(Int(int_of(size()) | (bits & std::int32_t(0x80000000)))); }
};
template <class Format, class V>
OCTET_HD constexpr IntOf<V> encode_in_range(V y) {
  return InRange<Format, V>(y).code();
}

/// How often something happened, per lane.
template <class V>
struct HealthCounts {
  IntOf<V> saturated{}, flushed{}, nonfinite{};
};

/// Adds what happened to x when x * scale became `code`. A product that rounds to the largest value is not saturated, though it may lie
/// above: that of an amax and its own quotient does, by one rounding, for one float in eleven.
template <class Format, class V>
OCTET_HD void count_health(V x, V scale, IntOf<V> code, HealthCounts<V>& n) {
  using Int = IntOf<V>;
  n.saturated = magnitude(V(x * scale)) > splat<V>(Format::nearest_to_max) ? n.saturated + 1 : n.saturated;
  n.nonfinite = (int_of(x) & 0x7FFFFFFF) >= 0x7F800000 ? n.nonfinite + 1 : n.nonfinite;
  const Int kept = x != splat<V>(0) ? code & 0x7F : Int{} + 1;
  n.flushed = kept == 0 ? n.flushed + 1 : n.flushed;
}

}  // namespace octet::ops
