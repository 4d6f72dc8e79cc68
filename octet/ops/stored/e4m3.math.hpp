#pragma once

#include "octet/ops/stored/view.hpp"

namespace octet::ops {

/// e4m3: x = code * d, d the least power of two with max |x| <= E4M3::max d over 128 values, in E8M0; a block of zeros has d = 1.
struct E4m3Codec {
  struct Scalars {
    float descale, scale;
  };
  OCTET_HD static Scalars stored(const StoredView& s, std::int64_t group) { return {decode_e8m0(s.block_descales()[group]), 0}; }
  template <class Lanes>
  OCTET_HD static Scalars choose(Lanes lanes, const StoredView&, const typename Lanes::Group& x) {
    const float descale = power_of_two_descale<E4M3>(group_amax(lanes, x));
    return {descale, reciprocal_of_power(descale)};
  }
  OCTET_HD static void keep(const StoredView& s, std::int64_t group, const Scalars& k) { s.block_descales()[group] = e8m0_of(k.descale); }

  template <class Lanes, class Cursor>
  OCTET_HD static auto decode(Lanes lanes, const StoredView& s, const Scalars& k, Cursor at) {
    const auto* const codes = s.as<std::uint8_t>();
    if constexpr (requires { lanes.load_times(codes, at, k.descale); }) return lanes.load_times(codes, at, k.descale);
    else return lanes.load(codes, at) * k.descale;
  }
  template <class Lanes, class Cursor, class Draws>
  OCTET_HD static void encode(Lanes lanes, const StoredView& s, const Scalars& k, Cursor at, const typename Lanes::Value& x,
                              const Draws& draws) {
    lanes.store(s.as<std::uint8_t>(), at, lanes.scaled(x, k.scale, s.tiny, E4M3::min_subnormal), draws);
  }
};

}  // namespace octet::ops
