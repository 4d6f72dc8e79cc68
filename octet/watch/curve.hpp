#pragma once

#include "octet/watch/range.hpp"
#include "octet/watch/step_buckets.hpp"

namespace octet::watch {

/// The values of some neighbouring steps: their range, their mean, and how many were not finite, which neither has.
struct CurvePoint {
  std::int64_t first = 0, last = 0;
  Range range{};
  double sum = 0;
  std::int64_t count = 0, nonfinite = 0;

  static CurvePoint of(std::int64_t step, double x) {
    CurvePoint p{.first = step, .last = step};
    if (!std::isfinite(x)) p.nonfinite = 1;
    else p.range.add(float(x)), p.sum = x, p.count = 1;
    return p;
  }
  void absorb(const CurvePoint& other) {
    last = other.last, range.absorb(other.range);
    sum += other.sum, count += other.count, nonfinite += other.nonfinite;
  }
  double mean() const { return count > 0 ? sum / double(count) : NAN; }
};

/// One number over steps.
using Curve = StepBuckets<CurvePoint>;

}  // namespace octet::watch
