#pragma once

#include "octet/numerics/formats.hpp"

namespace octet {

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
}  // namespace octet
