#pragma once

#include "octet/ops/stored/e4m3.math.hpp"

namespace octet::ops {

/// e4m3_root, of x >= 0: x = (code * d)^2, d the least power of two with max sqrt(x) <= E4M3::max d over 128 values, in E8M0. The root
/// halves the exponent, so values of a block may differ by 2^35, against 2^17 in e4m3. Below 0, x becomes NaN.
struct RootCodec : E4m3Codec {
  template <class Lanes>
  OCTET_HD static Scalars choose(Lanes lanes, const StoredView&, const typename Lanes::Group& x) {
    const float descale = power_of_two_descale<E4M3>(lanes.sqrt(group_amax(lanes, x)));
    return {descale, reciprocal_of_power(descale)};
  }

  template <class Lanes, class Cursor>
  OCTET_HD static auto decode(Lanes lanes, const StoredView& s, const Scalars& k, Cursor at) {
    const auto root = E4m3Codec::decode(lanes, s, k, at);
    return root * root;
  }
  template <class Lanes, class Cursor, class Draws>
  OCTET_HD static void encode(Lanes lanes, const StoredView& s, const Scalars& k, Cursor at, const typename Lanes::Value& x,
                              const Draws& draws) {
    E4m3Codec::encode(lanes, s, k, at, lanes.sqrt(x), draws);
  }
};

}  // namespace octet::ops
