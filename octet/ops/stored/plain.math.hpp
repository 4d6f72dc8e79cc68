#pragma once

#include "octet/ops/stored/view.hpp"

namespace octet::ops {

/// f32 and bf16: the values themselves. T: float or Bf16.
template <class T>
struct PlainCodec {
  struct Scalars {};
  OCTET_HD static Scalars stored(const StoredView&, std::int64_t) { return {}; }
  template <class Lanes>
  OCTET_HD static Scalars choose(Lanes, const StoredView&, const typename Lanes::Group&) {
    return {};
  }
  OCTET_HD static void keep(const StoredView&, std::int64_t, const Scalars&) {}

  template <class Lanes, class Cursor>
  OCTET_HD static auto decode(Lanes lanes, const StoredView& s, const Scalars&, Cursor at) {
    return lanes.load(s.as<T>(), at);
  }
  template <class Lanes, class Cursor, class Draws>
  OCTET_HD static void encode(Lanes lanes, const StoredView& s, const Scalars&, Cursor at, const typename Lanes::Value& x,
                              const Draws& draws) {
    lanes.store(s.as<T>(), at, x, draws);
  }
};

}  // namespace octet::ops
