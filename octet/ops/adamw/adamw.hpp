#pragma once

#include <cstddef>
#include <span>

#include "octet/tensor/cut_positions.hpp"
#include "octet/tensor/storage.hpp"
#include "octet/tensor/stream.hpp"

namespace octet::ops {

/// The values that change per step, in device memory: an f32 tensor of adamw_step_floats elements. The schedule writes the learning rate,
/// clip() the rest; no launch depends on their values.
struct AdamWStep {
  float learning_rate = 0;
  float bias_correction1 = 1;     // 1 / (1 - beta1^t), with t counting applied steps from 1
  float bias_correction2 = 1;     // 1 / (1 - beta2^t)
  float gradient_scale = 1;       // factor of the stored gradient: clipping, and 1 / loss scale
  float skip = 0;                 // not 0: the step is skipped, for the reason adamw_skip_*
  float gradient_norm = 0;        // before clipping; for telemetry
  std::uint64_t updates = 0;      // number of applied updates: counter of stochastic rounding
  double power1 = 1, power2 = 1;  // beta1^t and beta2^t after t applied steps
};
inline constexpr int adamw_step_floats = sizeof(AdamWStep) / sizeof(float);
inline constexpr int adamw_step_rate = 0;            // index of `learning_rate`
inline constexpr int adamw_step_corrections = 1;     // index of both bias corrections
inline constexpr int adamw_step_gradient_scale = 3;  // index of `gradient_scale`
inline constexpr int adamw_step_updates = 6;         // index of `updates`
inline constexpr int adamw_step_skip = 4;            // index of `skip`: step.rows(adamw_step_skip, 1) is the skip flag of other ops
inline constexpr float adamw_skip_nonfinite = 1, adamw_skip_limit = 2;
static_assert(offsetof(AdamWStep, bias_correction1) == adamw_step_corrections * sizeof(float));
static_assert(offsetof(AdamWStep, gradient_scale) == adamw_step_gradient_scale * sizeof(float));
static_assert(offsetof(AdamWStep, updates) == adamw_step_updates * sizeof(float));

/// The variables of an update, numbered as their streams of draws.
enum class AdamWVariable : std::uint8_t { value, m, v };

/// Whether an update rounds a variable stochastically in this storage. Decided by the error of the update over 1,000 steps against FP64
/// (adamw_states.test.cpp; log-normal gradients of sigma 1, beta2 0.95, where no other is named), nearest against stochastic:
///   value f16           stochastic: a step of 1e-4 of a value is a tenth of FP16's spacing
///   m     e4m3 ..       nearest: m moves by 10% per step, more than half a spacing; 0.054 against 0.077. With sigma 4 draws raise a few
///                       tiny m to a whole step, and an update to 1,000 times its size
///   v     f16           stochastic: values near the least code stay there under nearest; 0.058 against 0.011 with sigma 2, beta2 0.999
///   v     e4m3_root     stochastic: v decays by 5% per step, its spacing is 12% to 25%: under nearest it never does; 0.39 against 0.10.
///                       The draws raise the mean of v, by 3% in 100 steps without a gradient
///   v     e4m3_tensor   stochastic, for the same reason: 0.21 against 0.08
///   v     e4m3_expanded nearest: the scalars of a block move in every step, and with them the codes; 0.037 against 0.052.
///                       With beta2 0.999 and spikes in the gradients it is 0.20 against 0.11
/// An e4m3_tensor value is rounded to nearest as in the publication that tried it.
OCTET_HD constexpr bool rounds_stochastically(Storage s, AdamWVariable variable) {
  if (s == Storage::bf16 || s == Storage::f16) return true;
  return variable == AdamWVariable::v && (s == Storage::e4m3_root || s == Storage::e4m3_tensor);
}

/// The moments: running means of gradient and squared gradient.
struct Moments {
  Stored m, v;
};

/// A parameter and its state, of one shape:
///   value  f32, bf16, bf16_nearest, f16 or e4m3_tensor
///   grad   f32, bf16, e4m3 or e4m3_tensor
///   m      f32, bf16, e4m3, e4m3_tensor or e4m3_expanded
///   v      f32, bf16, f16, e4m3_tensor, e4m3_expanded or e4m3_root
struct AdamWParameter {
  Stored value, grad;
  Moments moments;
  double weight_decay = 0.1;
  std::uint64_t key = 0;      // of this parameter's draws
  std::int64_t first = 0;     // of a slice: its first element's number in the parameter, a multiple of 8
  Tensor places = {};         // i64 [n, 4]: of a part of a larger parameter, the pieces of `CutPositions`; none: it is the whole
  Tensor gradient_amax = {};  // f32 [1]: max |grad|; needed if a moment has a scale per tensor
};

/// One AdamW update of many parameters at once, with g = grad * gradient_scale:
///   m = beta1 m + (1 - beta1) g,   v = beta2 v + (1 - beta2) g^2,
///   value -= learning_rate * (m bias_correction1 / (sqrt(v bias_correction2) + eps) + weight_decay * value).
/// step: f32 [12], see AdamWStep. The arithmetic is FP32, with moments before they are rounded; codes and scales are stored in the same
/// pass over memory, with the same bits on every backend. Values that rounds_stochastically() names take draws of Philox, keyed by (key,
/// update, variable, element of the whole parameter). A value of v that is not 0 is not stored as 0. With step.skip != 0, value, m and v
/// keep their bits for any grad, scales included. Source: Loshchilov & Hutter 2019, "Decoupled Weight Decay Regularization", algorithm 2,
/// where the learning rate is the product of the schedule multiplier and alpha, as in PyTorch.
///
/// A scale per tensor is the least power of two that holds a bound of the new values, so that one pass is enough and no value saturates:
///   |m| <= beta1 max |m| + (1 - beta1) max |g|,   |v| <= beta2 max v + (1 - beta2) max |g|^2,
///   |value| <= max |value| (1 + learning_rate weight_decay) + 2 learning_rate D,
/// where D bounds the direction of exact moments (direction_bound() in adamw.math.hpp), and 2 is for the rounding of stored ones. A value
/// beyond its bound saturates. The maxima of the stored values are recorded for the next update.
struct AdamW {
  std::span<const AdamWParameter> parameters;
  Tensor step;
  double beta1 = 0.9, beta2 = 0.95, eps = 1e-8;
  double direction_bound = 0;  // D, of moments that are not exact means; 0: as above
};
/// Throws ContractError on other shapes, dtypes or storages. Workspace: f32 [3 x parameters], from scratch, if a scale is per tensor.
void adamw(Stream&, const AdamW&);

}  // namespace octet::ops
