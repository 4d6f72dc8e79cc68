#pragma once

#include <algorithm>
#include <cmath>

namespace octet::watch {

/// Smallest and largest finite value; NaN while there is none.
struct Range {
  float low = NAN, high = NAN;

  void add(float x) {
    if (!std::isfinite(x)) return;
    low = std::isnan(low) ? x : std::min(low, x);
    high = std::isnan(high) ? x : std::max(high, x);
  }
  void absorb(const Range& other) { add(other.low), add(other.high); }
};

}  // namespace octet::watch
