#pragma once

#include "octet/ops/adamw/adamw.hpp"

namespace octet::ops {

/// The constants of one launch in the type of the arithmetic; 1 - beta is taken before rounding.
struct AdamWConstants {
  float beta1, beta2, one_minus_beta1, one_minus_beta2, eps, weight_decay;
  OCTET_HD explicit AdamWConstants(const AdamW& a)
      : beta1(float(a.beta1)),
        beta2(float(a.beta2)),
        one_minus_beta1(float(1 - a.beta1)),
        one_minus_beta2(float(1 - a.beta2)),
        eps(float(a.eps)),
        weight_decay(float(a.weight_decay)) {}
};

/// The update of the values under one cursor. Formula in adamw.hpp.
template <class Lanes, class Cursor, class G, class P, class M, class V>
OCTET_HD void adamw_update(Lanes lanes, Cursor at, const AdamWConstants& c, const AdamWStep& step, const G* grad, P* value, M* m, V* v) {
  const auto g = lanes.load(grad, at) * step.gradient_scale;
  const auto mean = lanes.load(m, at) * c.beta1 + g * c.one_minus_beta1;
  const auto square = lanes.load(v, at) * c.beta2 + g * g * c.one_minus_beta2;
  const auto direction = (mean / step.bias_correction1) / (lanes.sqrt(square / step.bias_correction2) + c.eps);
  const auto old = lanes.load(value, at);
  lanes.store(value, at, old - (direction + old * c.weight_decay) * step.learning_rate);
  lanes.store(m, at, mean);
  lanes.store(v, at, square);
}

}  // namespace octet::ops
