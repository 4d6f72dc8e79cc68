#pragma once

#include "octet/ops/quantize/sink.hpp"

namespace octet::ops {

/// y[t, c] = (x[t, c] - mean[t]) * inv_std[t] * w[c] + b[c],
///   mean[t] = mean_c x[t, c],   inv_std[t] = 1 / sqrt(mean_c (x[t, c] - mean[t])^2 + eps).
/// x: [T, D] f32, bf16 or f16; w, b: f32 [D]; y: a sink of [T, D] and x's dtype; mean, inv_std: f32 [T], kept for backward; written
/// unless `known`. Sums are FP32; the variance is summed about the mean, in a second pass, so an offset of x costs no precision.
/// With `added`, like x, x becomes x + added first, as ops::add() makes it, and nothing is known: on a GPU up to 8 rows of bf16 or f16 take
/// one launch. Source: Ba, Kiros & Hinton 2016, "Layer Normalization", eq. 4.
struct LayerNormForward {
  Tensor x, w, b;
  Sink& y;
  Tensor mean, inv_std;
  float eps;
  bool known = false;
  Tensor added = {};
};
/// Throws ContractError on shapes or dtypes other than these.
void layernorm_forward(Stream&, const LayerNormForward&);

/// sum = a + b as ops::add() makes it, and mean and inv_std of its rows. a, b, sum: [T, D] of one dtype, f32, bf16 or f16; sum may be a or
/// b; mean, inv_std: f32 [T].
struct LayerNormAdd {
  Tensor a, b, sum, mean, inv_std;
  float eps;
};
/// Throws ContractError on other shapes or dtypes.
void layernorm_add(Stream&, const LayerNormAdd&);

/// With n = (x - mean) * inv_std and g = dy * w:  dx (+)= inv_std * (g - mean_c(g) - n * mean_c(g * n)),
///   dw[c] += sum_t dy[t, c] * n[t, c],   db[c] += sum_t dy[t, c].
/// dy: [T, D] of x's dtype; dx: [T, D] of x's dtype, added to when `accumulate`, may be dy; dw, db: f32 [D], added to.
struct LayerNormBackward {
  Tensor dy, x, w, mean, inv_std;
  Tensor dx, dw, db;
  bool accumulate = false;
};
/// Throws ContractError on shapes or dtypes other than these. Workspace: f32 [workers, 2 D], from scratch.
void layernorm_backward(Stream&, const LayerNormBackward&);

}  // namespace octet::ops
