#pragma once

#include <cstdint>

#include "octet/base/hd.hpp"

namespace octet::ops {

template <class S>
struct LayerNormRow {
  S mean, inv_std;
};

/// Mean and 1 / standard deviation of one row. Formulas in layernorm.hpp.
template <class Lanes, class X>
OCTET_HD auto layernorm_statistics(Lanes lanes, std::int64_t cols, const X* x, float eps) {
  typename Lanes::Value total{}, squares{};
  lanes.each(cols, [&](auto at) { total = total + lanes.load(x, at); });
  const auto mean = lanes.sum(total) / float(cols);
  lanes.each(cols, [&](auto at) {
    const auto d = lanes.within(lanes.load(x, at) - mean, at);
    squares = squares + d * d;
  });
  const auto inv = 1.0f / lanes.sqrt(lanes.sum(squares) / float(cols) + eps);
  return LayerNormRow<decltype(inv + mean)>{mean, inv};
}

/// One row of LayerNorm, its statistics known.
template <class Lanes, class X, class W, class S, class Y>
OCTET_HD void layernorm_scale_row(Lanes lanes, std::int64_t cols, const X* x, const W* w, const W* b, LayerNormRow<S> row, Y y) {
  lanes.each(cols,
             [&](auto at) { lanes.store(y, at, (lanes.load(x, at) - row.mean) * row.inv_std * lanes.load(w, at) + lanes.load(b, at)); });
}

/// One row of LayerNorm; returns its statistics.
template <class Lanes, class X, class W, class Y>
OCTET_HD auto layernorm_row(Lanes lanes, std::int64_t cols, const X* x, const W* w, const W* b, float eps, Y* y) {
  const auto row = layernorm_statistics(lanes, cols, x, eps);
  layernorm_scale_row(lanes, cols, x, w, b, row, y);
  return row;
}

/// One row of its backward. Adds dy * n to dw and dy to db, which belong to the caller's lanes alone.
template <class Lanes, class X, class W, class S, class G>
OCTET_HD void layernorm_backward_row(Lanes lanes, std::int64_t cols, const X* dy, const X* x, const W* w, LayerNormRow<S> row,
                                     bool accumulate, X* dx, G* dw, G* db) {
  typename Lanes::Value plain{}, weighted{};
  lanes.each(cols, [&](auto at) {
    const auto g = lanes.load(dy, at) * lanes.load(w, at);
    plain = plain + g;
    weighted = weighted + g * ((lanes.load(x, at) - row.mean) * row.inv_std);
  });
  const auto mean_g = lanes.sum(plain) / float(cols), mean_gn = lanes.sum(weighted) / float(cols);
  lanes.each(cols, [&](auto at) {
    const auto n = (lanes.load(x, at) - row.mean) * row.inv_std, d = lanes.load(dy, at);
    auto g = (d * lanes.load(w, at) - mean_g - n * mean_gn) * row.inv_std;
    if (accumulate) g = g + lanes.load(dx, at);
    lanes.store(dx, at, g);
    lanes.store(dw, at, lanes.load(dw, at) + d * n);
    lanes.store(db, at, lanes.load(db, at) + d);
  });
}

}  // namespace octet::ops
