#pragma once

#include <cstdint>

#include "octet/base/hd.hpp"

namespace octet::ops {

/// y = x of 2 * half columns, turned by the angles whose cosines and sines are given, or by their opposites. y may be x.
template <bool opposite, class Lanes, class X, class Table, class Y>
OCTET_HD void rope_head(Lanes lanes, std::int64_t half, const X* x, const Table* cos, const Table* sin, Y y) {
  lanes.each(half, [&](auto at) {
    const auto c = lanes.load(cos, at), s = lanes.load(sin, at);
    const auto a = lanes.load(x, at), b = lanes.load(x + half, at);
    lanes.store(y, at, opposite ? a * c + b * s : a * c - b * s);
    lanes.store(y + half, at, opposite ? b * c - a * s : b * c + a * s);
  });
}

}  // namespace octet::ops
