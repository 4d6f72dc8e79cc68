#pragma once

#include <cstdint>

#include "octet/ops/rope/rope.hpp"

namespace octet::ops {

/// The columns of pair i of `half` pairs, and its angle in a row of the table.
struct RopePair {
  unsigned first, second, angle;
};
OCTET_HD constexpr RopePair rope_pair(RopePairs pairs, unsigned half, unsigned i) {
  return pairs == RopePairs::halves ? RopePair{i, i + half, i} : RopePair{2 * i, 2 * i + 1, i};
}

/// A pair turned by an angle, or by its opposite.
template <class V>
struct Turned {
  V first, second;
};
template <bool opposite, class V, class Angle>
OCTET_HD Turned<V> turned_pair(const V& a, const V& b, const Angle& c, const Angle& s) {
  return opposite ? Turned<V>{a * c + b * s, b * c - a * s} : Turned<V>{a * c - b * s, b * c + a * s};
}

/// y = x of 2 * half columns, turned by the angles whose cosines and sines are given, or by their opposites. y may be x.
template <bool opposite, class Lanes, class X, class Table, class Y>
OCTET_HD void rope_head(Lanes lanes, std::int64_t half, const X* x, const Table* cos, const Table* sin, Y y) {
  lanes.each(half, [&](auto at) {
    const auto turned = turned_pair<opposite>(lanes.load(x, at), lanes.load(x + half, at), lanes.load(cos, at), lanes.load(sin, at));
    lanes.store(y, at, turned.first);
    lanes.store(y + half, at, turned.second);
  });
}

}  // namespace octet::ops
