#pragma once

#include <cstdint>

#include "octet/base/hd.hpp"

namespace octet::ops {

/// Of a value, or a pack of them.
template <class V>
OCTET_HD V moved_mean(V mean, V x, float share) {
  return mean + (x - mean) * share;
}

/// mean = moved_mean(mean, x factor, share), n values.
template <class Lanes, class X>
OCTET_HD void running_mean_row(Lanes lanes, std::int64_t n, const X* x, float factor, float share, float* mean) {
  lanes.each(n, [&](auto at) {
    using Value = decltype(lanes.load(mean, at));
    lanes.store(mean, at, moved_mean<Value>(lanes.load(mean, at), lanes.load(x, at) * factor, share));
  });
}

}  // namespace octet::ops
