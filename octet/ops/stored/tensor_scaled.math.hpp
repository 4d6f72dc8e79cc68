#pragma once

#include "octet/ops/stored/view.hpp"

namespace octet::ops {

/// f16 and e4m3_tensor: x = code * d with one d for the tensor, a power of two; of e4m3_tensor also another one, if common_scales() made
/// it. Code: Fp16, or std::uint8_t for E4M3. Format has `max` and
/// `min_subnormal`. A group is stored with view.next_scale, whose codes must hold the largest magnitude; beyond it codes saturate.
template <class Code, class Format>
struct TensorCodec {
  struct Scalars {
    float descale, scale;
  };
  OCTET_HD static Scalars stored(const StoredView& s, std::int64_t) { return {s.tensor_descale(), 0}; }
  template <class Lanes>
  OCTET_HD static Scalars choose(Lanes, const StoredView& s, const typename Lanes::Group&) {
    return {0, s.next_scale};
  }
  OCTET_HD static void keep(const StoredView&, std::int64_t, const Scalars&) {}

  template <class Lanes, class Cursor>
  OCTET_HD static auto decode(Lanes lanes, const StoredView& s, const Scalars& k, Cursor at) {
    return lanes.load(s.as<Code>(), at) * k.descale;
  }
  template <class Lanes, class Cursor, class Draws>
  OCTET_HD static void encode(Lanes lanes, const StoredView& s, const Scalars& k, Cursor at, const typename Lanes::Value& x,
                              const Draws& draws) {
    lanes.store(s.as<Code>(), at, lanes.scaled(x, k.scale, s.tiny, Format::min_subnormal), draws);
  }
};

/// The limits of FP16 as a format of codes.
struct F16Limits {
  static constexpr float max = Fp16::max, min_subnormal = 0x1p-24f;
};
using F16Codec = TensorCodec<Fp16, F16Limits>;
using E4m3TensorCodec = TensorCodec<std::uint8_t, E4M3>;

/// The largest magnitude that a tensor has after values of at most `amax` were stored with `descale`: exact for rounding to nearest. Of
/// `drawn` values it is the code at or above amax.
OCTET_HD constexpr float stored_amax(Storage s, float amax, float descale, bool drawn) {
  const float y = amax / descale;
  if (s == Storage::e4m3_tensor) {
    const std::uint8_t code = encode<E4M3>(y);
    return decode<E4M3>(std::uint8_t(drawn && decode<E4M3>(code) < y && code < E4M3::max_code ? code + 1 : code)) * descale;
  }
  if (y >= Fp16::max) return Fp16::max * descale;
  const float nearest = to_float(to_fp16(y));
  return (drawn && nearest < y ? to_float(Fp16{std::uint16_t(to_fp16(y).bits + 1)}) : nearest) * descale;
}
/// The descale of a tensor whose values are at most `bound`; beyond the format's range that of the largest float.
OCTET_HD constexpr float tensor_descale_for(Storage s, float bound) {
  bound = bound <= 0x1.fffffep127f ? bound : 0x1.fffffep127f;  // NaN, too
  return s == Storage::f16 ? power_of_two_descale<F16Limits>(bound) : power_of_two_descale<E4M3>(bound);
}

}  // namespace octet::ops
