#pragma once

#include "octet/tensor/stream.hpp"

namespace octet::ops {

/// How a loss scale moves. Every factor and bound is a power of two, so scaling and unscaling change no bit of a gradient within range.
struct LossScaleRule {
  float growth = 2;                  // factor after growth_steps good steps in a row
  float backoff = 0.5f;              // factor after a skipped step
  std::int64_t growth_steps = 2000;  // 0: it never grows
  float smallest = 1, largest = 0x1p24f;
};

/// The scale of the next step's loss, in device memory: an f32 tensor of loss_scale_floats elements, of which the first is the scale.
struct LossScaleState {
  float scale = 1;
  float unused = 0;
  std::int64_t good_steps = 0;  // applied since the scale last moved or a step was skipped
};
inline constexpr int loss_scale_floats = sizeof(LossScaleState) / sizeof(float);

/// Moves a loss scale after a step:
///   skipped          scale = max(scale * backoff, smallest),   good_steps = 0
///   beyond a limit   as before: the step was skipped, but its values were finite (adamw_skip_limit)
///   otherwise        good_steps + 1; when it reaches growth_steps: scale = min(scale * growth, largest), good_steps = 0
/// state: f32 [4], a LossScaleState; skip: f32 [1], the AdamWStep's. Source: Micikevicius et al. 2018, "Mixed Precision
/// Training", section 3.2; the numbers are those of torch.amp.GradScaler.
struct LossScale {
  Tensor state, skip;
  LossScaleRule rule;
};
/// Throws ContractError on other shapes or dtypes.
void move_loss_scale(Stream&, const LossScale&);

}  // namespace octet::ops
