#pragma once

#include <cstdint>

#include "octet/base/hd.hpp"

namespace octet::ops {

/// Sum of squares of one row, or of some of its columns. Formulas in rmsnorm.hpp.
template <class Lanes, class X>
OCTET_HD auto rmsnorm_squares(Lanes lanes, std::int64_t cols, const X* x) {
  typename Lanes::Value squares{};
  lanes.each(cols, [&](auto at) {
    const auto v = lanes.load(x, at);
    squares = squares + v * v;
  });
  return lanes.sum(squares);
}

/// 1 / rms of a row of so many columns, from its sum of squares.
template <class Lanes, class S>
OCTET_HD auto rmsnorm_factor(Lanes lanes, S squares, std::int64_t cols, float eps) {
  return 1.0f / lanes.sqrt(squares / float(cols) + eps);
}

/// 1 / rms of one row.
template <class Lanes, class X>
OCTET_HD auto rmsnorm_statistic(Lanes lanes, std::int64_t cols, const X* x, float eps) {
  return rmsnorm_factor(lanes, rmsnorm_squares(lanes, cols, x), cols, eps);
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

/// Sum of g * n over one row, or over some of its columns.
template <class Lanes, class X, class W, class S>
OCTET_HD auto rmsnorm_products(Lanes lanes, std::int64_t cols, const X* dy, const X* x, const W* w, float offset, S inv) {
  typename Lanes::Value products{};
  lanes.each(cols, [&](auto at) { products = products + lanes.load(dy, at) * (lanes.load(w, at) + offset) * (lanes.load(x, at) * inv); });
  return lanes.sum(products);
}

/// One row of its backward, or some of its columns, with the mean of g * n over all. Adds dy * n to dw, which belongs to the caller's lanes
/// alone.
template <class Lanes, class X, class W, class S, class M, class G>
OCTET_HD void rmsnorm_gradient_row(Lanes lanes, std::int64_t cols, const X* dy, const X* x, const W* w, float offset, S inv, M mean,
                                   bool accumulate, X* dx, G* dw) {
  lanes.each(cols, [&](auto at) {
    const auto n = lanes.load(x, at) * inv, d = lanes.load(dy, at);
    auto g = (d * (lanes.load(w, at) + offset) - n * mean) * inv;
    if (accumulate) g = g + lanes.load(dx, at);
    lanes.store(dx, at, g);
    lanes.store(dw, at, lanes.load(dw, at) + d * n);
  });
}

/// The same of a complete row.
template <class Lanes, class X, class W, class S, class G>
OCTET_HD void rmsnorm_backward_row(Lanes lanes, std::int64_t cols, const X* dy, const X* x, const W* w, float offset, S inv,
                                   bool accumulate, X* dx, G* dw) {
  const auto mean = rmsnorm_products(lanes, cols, dy, x, w, offset, inv) / float(cols);
  rmsnorm_gradient_row(lanes, cols, dy, x, w, offset, inv, mean, accumulate, dx, dw);
}

}  // namespace octet::ops
