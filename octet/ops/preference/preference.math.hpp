#pragma once

#include <cmath>

#include "octet/base/hd.hpp"
#include "octet/ops/preference/preference.hpp"

namespace octet::ops {

/// log(1 + e^x), of a double or a dual number.
template <class S>
OCTET_HD S softplus(S x) {
  using ::exp, ::log;
  const S zero(0.0);
  return (x > zero ? x : zero) + log(S(1.0) + exp(x > zero ? -x : x));
}
OCTET_HD double logistic(double x) { return 1 / (1 + ::exp(-x)); }

/// The loss of a pair whose rewards differ by z, and its derivative by z.
template <class S>
OCTET_HD S preference_loss(double smoothing, S z) {
  return S(1 - smoothing) * softplus(-z) + S(smoothing) * softplus(z);
}
OCTET_HD double preference_slope(double smoothing, double z) { return smoothing * logistic(z) - (1 - smoothing) * logistic(-z); }

/// The terms of a pair in the sums: PreferenceSum, then its loss and 1. The derivative of its loss by the losses of the chosen answer's
/// tokens is `weight`, and by those of the rejected one's -weight.
struct PairResult {
  static constexpr int entries = preference_sums + 2;
  double values[entries];
  double weight;
};
OCTET_HD double known_or(double reference, double log_probability) { return reference == reference ? reference : log_probability; }
OCTET_HD PairResult pair_result(const PreferenceForm& form, const double* reference, double chosen, double rejected) {
  const double r0 = form.beta * (chosen - known_or(reference[0], chosen)), r1 = form.beta * (rejected - known_or(reference[1], rejected));
  const double z = r0 - r1;
  return {{r0, r1, r0 > r1 ? 1.0 : 0.0, chosen, rejected, preference_loss(form.label_smoothing, z), 1.0},
          -form.beta * preference_slope(form.label_smoothing, z)};
}

}  // namespace octet::ops
