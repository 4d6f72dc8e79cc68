#pragma once

#include <span>

#include "octet/tensor/stream.hpp"

namespace octet::ops {

/// The values that change per step, in device memory: an f32 tensor of adamw_step_floats elements. The schedule writes the learning rate,
/// clip() the rest; no launch depends on their values.
struct AdamWStep {
  float learning_rate = 0;
  float bias_correction1 = 1;     // 1 / (1 - beta1^t), with t counting applied steps from 1
  float bias_correction2 = 1;     // 1 / (1 - beta2^t)
  float gradient_scale = 1;       // factor of the stored gradient: clipping, and 1 / loss scale
  float skip = 0;                 // not 0: the step is skipped
  float gradient_norm = 0;        // before clipping; for telemetry
  std::uint64_t updates = 0;      // number of applied updates: counter of stochastic rounding
  double power1 = 1, power2 = 1;  // beta1^t and beta2^t after t applied steps
};
inline constexpr int adamw_step_floats = sizeof(AdamWStep) / sizeof(float);
inline constexpr int adamw_step_rate = 0;     // index of `learning_rate`
inline constexpr int adamw_step_updates = 6;  // index of `updates`
inline constexpr int adamw_step_skip = 4;     // index of `skip`: step.rows(adamw_step_skip, 1) is the skip flag of other ops

/// The moments: running means of gradient and squared gradient, each stored as f32 or bf16.
struct Moments {
  Tensor m, v;
};

/// A parameter and its state: of one shape, each f32 or bf16.
struct AdamWParameter {
  Tensor value, grad;
  Moments moments;
  double weight_decay = 0.1;
  std::uint64_t key = 0;  // of this parameter's draws
};

/// One AdamW update of many parameters at once, with g = grad * gradient_scale:
///   m = beta1 m + (1 - beta1) g,   v = beta2 v + (1 - beta2) g^2,
///   value -= learning_rate * (m bias_correction1 / (sqrt(v bias_correction2) + eps) + weight_decay * value).
/// step: f32 [12], see AdamWStep. The arithmetic is FP32; bf16 values are rounded stochastically, by Philox keyed by (key, update,
/// variable, element), since an update is often less than half of its last place: the same bits on every backend. With step.skip
/// != 0, value, m and v keep their bits for any grad. Source: Loshchilov & Hutter 2019, "Decoupled Weight Decay Regularization", algorithm
/// 2, where the learning rate is the product of the schedule multiplier and alpha, as in PyTorch.
struct AdamW {
  std::span<const AdamWParameter> parameters;
  Tensor step;
  double beta1 = 0.9, beta2 = 0.95, eps = 1e-8;
};
/// Throws ContractError on other shapes or dtypes.
void adamw(Stream&, const AdamW&);

}  // namespace octet::ops
