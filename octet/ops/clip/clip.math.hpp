#pragma once

#include <cstdint>

#include "octet/ops/clip/clip.hpp"

namespace octet::ops {

/// The part of an AdamWStep that clip() writes. Formula in clip.hpp.
OCTET_HD void clip_step(double sum_of_squares, float unscale, float max_norm, bool skip, AdamWStep& step) {
  const double norm = __builtin_sqrt(sum_of_squares) * double(unscale);
  skip = skip || !(norm < __builtin_inf());
  const bool clips = max_norm > 0 && norm > double(max_norm);
  step.gradient_scale = skip ? 0 : clips ? float(double(unscale) * (double(max_norm) / norm)) : unscale;
  step.gradient_norm = float(norm);
  step.skip = skip ? 1 : 0;
}

OCTET_HD bool any_not_finite(const float* x, std::int64_t n) {
  bool any = false;
  for (std::int64_t i = 0; i < n; ++i) any = any || !(__builtin_fabsf(x[i]) < __builtin_inff());
  return any;
}
OCTET_HD bool any_positive(const std::int64_t* x, std::int64_t n) {
  bool any = false;
  for (std::int64_t i = 0; i < n; ++i) any = any || x[i] > 0;
  return any;
}

}  // namespace octet::ops
