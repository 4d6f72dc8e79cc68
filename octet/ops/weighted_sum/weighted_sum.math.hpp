#pragma once

#include <cmath>
#include <cstdint>

#include "octet/ops/adamw/adamw.hpp"
#include "octet/ops/weighted_sum/weighted_sum.hpp"

namespace octet::ops {

/// The factors of x and y.
struct WeightedSumFactors {
  float x = 1, y = 0;
  bool y_unread = false;  // y may be NaN
};

/// Those of one call. Formula in weighted_sum.hpp.
OCTET_HD WeightedSumFactors factors_of(float a, float b, const double* squares, const AdamWStep* step) {
  if (step != nullptr && step->skip != 0) return {.x = 1, .y = 0, .y_unread = true};
  constexpr double least = 0x1p-250;  // its root's inverse is finite in f32
  const float r = squares == nullptr ? 1.0f : *squares > least ? float(1 / __builtin_sqrt(*squares)) : *squares <= least ? 0.0f : NAN;
  return {.x = a * r, .y = b * r * (step != nullptr ? step->gradient_scale : 1.0f)};
}

/// n values; y may be null.
template <class Lanes, class X, class Out>
OCTET_HD void weighted_sum_row(Lanes lanes, std::int64_t n, const WeightedSumFactors& f, const X* x, const X* y, Out* out) {
  if (y == nullptr || f.y_unread) lanes.each(n, [&](auto at) { lanes.store(out, at, lanes.load(x, at) * f.x); });
  else lanes.each(n, [&](auto at) { lanes.store(out, at, lanes.load(x, at) * f.x + lanes.load(y, at) * f.y); });
}

}  // namespace octet::ops
