#pragma once

#include <cstdint>

#include "octet/ops/clip/clip.hpp"

namespace octet::ops {

OCTET_HD bool any_not_finite(const float* x, std::int64_t n) {
  bool any = false;
  for (std::int64_t i = 0; i < n; ++i) any = any || !(__builtin_fabsf(x[i]) < __builtin_inff());
  return any;
}
OCTET_HD bool any_above(const float* x, std::int64_t n, float limit) {
  bool any = false;
  for (std::int64_t i = 0; i < n; ++i) any = any || x[i] > limit;
  return any;
}
OCTET_HD bool any_positive(const std::int64_t* x, std::int64_t n) {
  bool any = false;
  for (std::int64_t i = 0; i < n; ++i) any = any || x[i] > 0;
  return any;
}

/// A Clip's tensors as addresses, for the one thread that decides. Those that are empty are null.
struct ClipValues {
  const double* sum_of_squares;
  const float *loss, *gradient_factor, *loss_scale, *limits;
  const std::int64_t* nonfinite;
  std::int64_t losses, counters;
  float max_norm;
  double beta1, beta2;
  AdamWStep* step;

  explicit ClipValues(const Clip& a)
      : sum_of_squares(a.sum_of_squares.as<double>()),
        loss(a.loss.f32()),
        gradient_factor(a.gradient_factor.f32()),
        loss_scale(a.loss_scale.f32()),
        limits(a.limits.f32()),
        nonfinite(a.nonfinite.as<std::int64_t>()),
        losses(a.loss ? a.loss.count() : 0),
        counters(a.nonfinite ? a.nonfinite.count() : 0),
        max_norm(a.max_norm),
        beta1(a.beta1),
        beta2(a.beta2),
        step(a.step.as<AdamWStep>()) {}
};

/// The part of an AdamWStep that clip() writes. Formula in clip.hpp.
OCTET_HD void clip_step(const ClipValues& a) {
  AdamWStep& step = *a.step;
  const float unscale = (a.gradient_factor != nullptr ? *a.gradient_factor : 1.0f) / (a.loss_scale != nullptr ? *a.loss_scale : 1.0f);
  const double norm = __builtin_sqrt(*a.sum_of_squares) * double(unscale);
  const bool clips = a.max_norm > 0 && norm > double(a.max_norm);
  const double largest = clips ? double(a.max_norm) : norm;  // that a gradient can be in the update
  const bool nonfinite = any_not_finite(a.loss, a.losses) || any_positive(a.nonfinite, a.counters) || !(norm < __builtin_inf()) ||
                         !(largest < clip_largest) || any_not_finite(&step.learning_rate, 1);
  const bool above = a.limits != nullptr && (any_above(a.loss, a.losses, a.limits[0]) || float(norm) > a.limits[1]);
  const bool skip = nonfinite || above;
  step.gradient_scale = skip ? 0 : clips ? float(double(unscale) * (double(a.max_norm) / norm)) : unscale;
  step.gradient_norm = float(norm);
  step.skip = nonfinite ? adamw_skip_nonfinite : above ? adamw_skip_limit : 0;
  if (skip) return;
  ++step.updates;
  step.power1 *= a.beta1, step.power2 *= a.beta2;
  step.bias_correction1 = float(1 / (1 - step.power1)), step.bias_correction2 = float(1 / (1 - step.power2));
}

}  // namespace octet::ops
