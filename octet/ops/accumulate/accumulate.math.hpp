#pragma once

#include "octet/ops/accumulate/accumulate.hpp"
#include "octet/ops/stored/codec.math.hpp"

namespace octet::ops {

/// The numbers of one addition: philox(key, element / 8, stream) draws.
struct AccumulateDraws {
  std::uint64_t key, stream;
  bool adds;  // to contents; otherwise these are stale
  OCTET_HD AccumulateDraws(std::uint64_t key, const std::int64_t* draws)
      : key(key),
        stream(std::uint64_t(draws[accumulate_update]) << 24 | std::uint64_t(draws[accumulate_part])),
        adds(draws[accumulate_part] != 0) {}
};

/// The values that codes of a group will hold.
template <class Codec, class T, class Lanes>
OCTET_HD void sums_of_group(Codec codec, Lanes lanes, const T* x, const StoredView& sum, bool adds, std::int64_t group,
                            typename Lanes::Group& v) {
  lanes.each_pack(sum.count, group, v, [&](int i, auto at) { v.v[i] = lanes.load(x, at); });
  if (!adds || group >= groups_of(sum.count)) return;
  const auto scalars = codec.stored(sum, group);
  lanes.each_pack(sum.count, group, [&](int i, auto at) { v.v[i] = v.v[i] + codec.decode(lanes, sum, scalars, at); });
}

/// sum = encode(sum + x) of a group; formula in accumulate.hpp.
template <class Codec, class T, class Lanes, class Draws>
OCTET_HD void accumulate_group(Codec codec, Lanes lanes, const T* x, const StoredView& sum, bool adds, std::int64_t group,
                               const Draws& draws) {
  typename Lanes::Group v;
  sums_of_group(codec, lanes, x, sum, adds, group, v);
  store_group(codec, lanes, sum, group, v, draws);
}

}  // namespace octet::ops
