#pragma once

#include <cstdint>

#include "octet/base/hd.hpp"

namespace octet {

/// Integers in the order of numbers, in which loops compare several values at once. Both zeros are one, and NaN is above infinity or below
/// minus infinity.
OCTET_HD constexpr std::int32_t ordered(float x) {
  const auto bits = __builtin_bit_cast(std::int32_t, x + 0.0f);
  return bits ^ ((bits >> 31) & 0x7FFFFFFF);
}
inline constexpr std::int32_t ordered_infinity = 0x7F800000, ordered_minus_infinity = ~ordered_infinity;

/// The least and the largest of some values, ordered().
struct OrderedRange {
  std::int32_t least = 0x7FFFFFFF, most = ~0x7FFFFFFF;

  OCTET_HD constexpr void add(std::int32_t x) { least = x < least ? x : least, most = x > most ? x : most; }
  OCTET_HD constexpr void add(const OrderedRange& r) { least = r.least < least ? r.least : least, most = r.most > most ? r.most : most; }
  OCTET_HD constexpr bool is_finite() const { return least > ordered_minus_infinity && most < ordered_infinity; }
};

}  // namespace octet
