#pragma once

#include <cstdint>

#include "octet/base/hd.hpp"

namespace octet::ops {

/// 1 / rms of one row. Formulas in rmsnorm.hpp.
template <class Lanes, class X>
OCTET_HD auto rmsnorm_statistic(Lanes lanes, std::int64_t cols, const X* x, float eps) {
  typename Lanes::Value squares{};
  lanes.each(cols, [&](auto at) {
    const auto v = lanes.load(x, at);
    squares = squares + v * v;
  });
  return 1.0f / lanes.sqrt(lanes.sum(squares) / float(cols) + eps);
}

/// One row of RMSNorm, its 1 / rms known.
template <class Lanes, class X, class W, class S, class Y>
OCTET_HD void rmsnorm_scale_row(Lanes lanes, std::int64_t cols, const X* x, const W* w, float offset, S inv, Y y) {
  lanes.each(cols, [&](auto at) { lanes.store(y, at, lanes.load(x, at) * inv * (lanes.load(w, at) + offset)); });
}

/// One row of RMSNorm; returns 1 / rms.
template <class Lanes, class X, class W, class Y>
OCTET_HD auto rmsnorm_row(Lanes lanes, std::int64_t cols, const X* x, const W* w, float offset, float eps, Y* y) {
  const auto inv = rmsnorm_statistic(lanes, cols, x, eps);
  rmsnorm_scale_row(lanes, cols, x, w, offset, inv, y);
  return inv;
}

/// One row of its backward. Adds dy * n to dw, which belongs to the caller's lanes alone.
template <class Lanes, class X, class W, class S, class G>
OCTET_HD void rmsnorm_backward_row(Lanes lanes, std::int64_t cols, const X* dy, const X* x, const W* w, float offset, S inv,
                                   bool accumulate, X* dx, G* dw) {
  typename Lanes::Value products{};
  lanes.each(cols, [&](auto at) { products = products + lanes.load(dy, at) * (lanes.load(w, at) + offset) * (lanes.load(x, at) * inv); });
  const auto mean = lanes.sum(products) / float(cols);
  lanes.each(cols, [&](auto at) {
    const auto n = lanes.load(x, at) * inv, d = lanes.load(dy, at);
    auto g = (d * (lanes.load(w, at) + offset) - n * mean) * inv;
    if (accumulate) g = g + lanes.load(dx, at);
    lanes.store(dx, at, g);
    lanes.store(dw, at, lanes.load(dw, at) + d * n);
  });
}

}  // namespace octet::ops
