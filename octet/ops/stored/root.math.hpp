#pragma once

#include "octet/ops/stored/view.hpp"

namespace octet::ops {

/// e4m3_root, of x >= 0: x = (code * d)^2, d the least power of two with max sqrt(x) <= E4M3::max d over 128 values, in E8M0. The root
/// halves the exponent, so values of a block may differ by 2^35, against 2^17 in e4m3. Below 0, x becomes NaN.
struct RootCodec {
  struct Scalars {
    float descale, scale;
  };
  OCTET_HD static Scalars stored(const StoredView& s, std::int64_t group) { return {power_of(s.block_descales()[group]), 0}; }
  template <class Lanes>
  OCTET_HD static Scalars choose(Lanes lanes, const StoredView&, const typename Lanes::Group& x) {
    const float descale = power_of_two_descale<E4M3>(lanes.sqrt(group_amax(lanes, x)));
    return {descale, 1.0f / descale};
  }
  OCTET_HD static void keep(const StoredView& s, std::int64_t group, const Scalars& k) { s.block_descales()[group] = e8m0_of(k.descale); }

  template <class Lanes, class Cursor>
  OCTET_HD static auto decode(Lanes lanes, const StoredView& s, const Scalars& k, Cursor at) {
    const auto root = lanes.load(s.as<std::uint8_t>(), at) * k.descale;
    return root * root;
  }
  template <class Lanes, class Cursor, class Draws>
  OCTET_HD static void encode(Lanes lanes, const StoredView& s, const Scalars& k, Cursor at, const typename Lanes::Value& x,
                              const Draws& draws) {
    const auto code = lanes.map(lanes.sqrt(x), [&](auto v) {
      const auto y = infinite_as_nan(v * k.scale);
      return s.tiny == Tiny::keep ? kept_above(y, E4M3::min_subnormal) : y;
    });
    lanes.store(s.as<std::uint8_t>(), at, code, draws);
  }
};

}  // namespace octet::ops
