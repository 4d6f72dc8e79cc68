#pragma once

#include "octet/ops/stored/stored.hpp"

namespace octet::ops {

/// A Stored as a kernel holds it, and how it is written.
struct StoredView {
  void* codes = nullptr;
  void* scales = nullptr;
  std::int64_t count = 0;
  Storage storage = Storage::f32;
  Tiny tiny = Tiny::flush;
  float next_scale = 1;  // f16, e4m3_tensor: 1 / d of values to be stored; d of stored ones is in `scales`

  template <class T>
  OCTET_HD T* as() const {
    return static_cast<T*>(codes);
  }
  OCTET_HD float tensor_descale() const { return static_cast<const float*>(scales)[0]; }
  OCTET_HD std::uint8_t* block_descales() const { return static_cast<std::uint8_t*>(scales); }  // e8m0
};

[[gnu::always_inline]] inline StoredView view_of(const Stored& s, Tiny tiny = Tiny::flush) {
  return {s.codes.data, s.scales.data, s.count(), s.storage, tiny};
}

/// Groups of 128 values, the last one possibly shorter.
OCTET_HD constexpr std::int64_t groups_of(std::int64_t count) { return (count + storage_block - 1) / storage_block; }

/// Rounding to nearest even, where a store takes draws.
struct Nearest {};

/// The least power of two d with amax <= most * d, where most is a format's largest value; at least 2^-126, at most so large
/// that most * d is finite, and 1 for amax = 0. amax is finite. Between those ends 1 / d is the scale of ScaleRule::power_of_two.
template <class Format>
OCTET_HD constexpr float power_of_two_descale(float amax) {
  constexpr std::int32_t most = std::int32_t(bits_of(Format::max)), mantissa = most & 0x7FFFFF;
  const std::int32_t bits = int_of(amax);
  if (bits <= 0) return 1.0f;
  const std::int32_t exponent = (bits >> 23) - (most >> 23) + 127 + ((bits & 0x7FFFFF) > mantissa ? 1 : 0);
  constexpr std::int32_t highest = 254 - ((most >> 23) - 127);
  return float_of(std::uint32_t(exponent < 1 ? 1 : exponent > highest ? highest : exponent) << 23);
}
/// 1 / d of a descale: a power of two of which both are normal numbers.
OCTET_HD constexpr float reciprocal_of_power(float d) { return float_of((254u << 23) - bits_of(d)); }
/// A power of two that is a normal number as E8M0; decode_e8m0() is its inverse.
OCTET_HD constexpr std::uint8_t e8m0_of(float power) { return std::uint8_t(bits_of(power) >> 23); }

/// |x| where x is finite, otherwise 0: what counts in a maximum.
template <class V>
OCTET_HD constexpr V finite_magnitude(V x) {
  const V size = magnitude(x);
  return size <= 0x1.fffffep127f ? size : V{};
}
/// x, and NaN where x is infinite: E4M3 has no other code that shows it.
template <class V>
OCTET_HD constexpr V infinite_as_nan(V x) {
  return magnitude(x) <= 0x1.fffffep127f ? x : splat<V>(__builtin_nanf(""));
}
/// A finite x is at most `most` in magnitude.
template <class V>
OCTET_HD constexpr V saturated(V x, float most) {
  const V size = magnitude(x), signed_most = value_of<V>(IntOf<V>((int_of(x) & std::int32_t(0x80000000)) | int_of(splat<V>(most))));
  const V finite = size > most ? signed_most : x;
  return size <= 0x1.fffffep127f ? finite : x;
}
/// The magnitude of x != 0 is at least `least`.
template <class V>
OCTET_HD constexpr V kept_above(V x, float least) {
  const V size = magnitude(x), signed_least = value_of<V>(IntOf<V>((int_of(x) & std::int32_t(0x80000000)) | int_of(splat<V>(least))));
  const V raised = size < least ? signed_least : x;
  return size > 0.0f ? raised : x;
}

/// max |x| over a group, of finite values; on every lane.
template <class Lanes>
OCTET_HD float group_amax(Lanes lanes, const typename Lanes::Group& x) {
  return lanes.group_max(lanes.own_amax(x));
}

}  // namespace octet::ops
