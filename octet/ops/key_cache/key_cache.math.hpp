#pragma once

#include "octet/numerics/scale.hpp"

namespace octet::ops {

/// The scale of a row of keys or values whose largest magnitude is amax. A power of two, so that values of codes are BF16 numbers.
OCTET_HD BlockScale<float> key_scale(float amax) {
  return block_scale(amax, {.rule = ScaleRule::power_of_two, .format_max = E4M3::max, .overflow = 0x1.fffffep127f});
}

/// The first place that a token at `place` reads.
OCTET_HD constexpr std::int64_t first_place(std::int64_t place, std::int64_t window) {
  return window > 0 && place >= window ? place - window + 1 : 0;
}

/// y[c] = factor * sum_j w[j] rows[j, c] for n rows of `columns` values.
template <class Lanes, class W, class X, class Y>
OCTET_HD void weighted_rows(Lanes lanes, std::int64_t n, std::int64_t columns, const W* w, const X* rows, W factor, Y* y) {
  using Value = typename Lanes::Value;
  lanes.each(columns, [&](auto at) {
    Value even{}, odd{};
    std::int64_t j = 0;
    for (; j + 1 < n; j += 2) {
      even = even + lanes.load(rows + j * columns, at) * w[j];
      odd = odd + lanes.load(rows + (j + 1) * columns, at) * w[j + 1];
    }
    if (j < n) even = even + lanes.load(rows + j * columns, at) * w[j];
    lanes.store(y, at, Value((even + odd) * factor));
  });
}

}  // namespace octet::ops
