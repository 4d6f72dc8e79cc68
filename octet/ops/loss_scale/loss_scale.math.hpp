#pragma once

#include "octet/base/hd.hpp"
#include "octet/ops/adamw/adamw.hpp"
#include "octet/ops/loss_scale/loss_scale.hpp"

namespace octet::ops {

/// The state after a step. Formula in loss_scale.hpp.
OCTET_HD LossScaleState moved(LossScaleState s, const LossScaleRule& rule, float skip) {
  if (skip == adamw_skip_limit) return s;
  if (skip != 0) {
    s.scale = s.scale * rule.backoff > rule.smallest ? s.scale * rule.backoff : rule.smallest;
    s.good_steps = 0;
    return s;
  }
  ++s.good_steps;
  if (rule.growth_steps == 0 || s.good_steps < rule.growth_steps) return s;
  s.scale = s.scale * rule.growth < rule.largest ? s.scale * rule.growth : rule.largest;
  s.good_steps = 0;
  return s;
}

}  // namespace octet::ops
