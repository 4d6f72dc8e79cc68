#pragma once

#include "octet/ops/quantize/sink.hpp"

namespace octet::ops {

/// y[t, c] = x[t, c] * inv_rms[t] * (offset + w[c]),   inv_rms[t] = 1 / sqrt(mean_c x[t, c]^2 + eps).
/// x: [T, D] f32, bf16 or f16; w: f32 [D]; y: a sink of [T, D] and x's dtype; inv_rms: f32 [T], kept for backward; written unless `known`.
/// Sums are FP32. With `added`, like x, x becomes x + added first, as ops::add() makes it, and nothing is known: on a GPU up to 8 rows of
/// bf16 or f16 take one launch. Source: Zhang & Sennrich 2019, "Root Mean Square Layer Normalization", eq. 4.
struct RmsNormForward {
  Tensor x, w;
  Sink& y;
  Tensor inv_rms;
  float eps;
  bool known = false;
  float offset = 0;
  Tensor added = {};
};
/// Throws ContractError on shapes or dtypes other than these.
void rmsnorm_forward(Stream&, const RmsNormForward&);

/// sum = a + b as ops::add() makes it, and inv_rms of its rows: the residual sum that a norm comes next to. a, b, sum: [T, D] of one
/// dtype, f32, bf16 or f16; sum may be a or b; inv_rms: f32 [T].
struct RmsNormAdd {
  Tensor a, b, sum, inv_rms;
  float eps;
};
/// Throws ContractError on other shapes or dtypes.
void rmsnorm_add(Stream&, const RmsNormAdd&);

/// With n = x * inv_rms and g = dy * (offset + w):  dx (+)= inv_rms * (g - n * mean_c(g * n)),   dw[c] += sum_t dy[t, c] * n[t, c].
/// dy: [T, D] of x's dtype; dx: [T, D] of x's dtype, added to when `accumulate`, may be dy; dw: f32 [D], added to. mean: f32 [T], the mean
/// of g * n over all columns, where these D are a part of them (ops/norm_parts); empty: they are all, and it is found.
struct RmsNormBackward {
  Tensor dy, x, w, inv_rms;
  Tensor dx, dw;
  bool accumulate = false;
  float offset = 0;
  Tensor mean = {};
};
/// Throws ContractError on shapes or dtypes other than these. Workspace: f32 [workers, D], from scratch.
void rmsnorm_backward(Stream&, const RmsNormBackward&);

}  // namespace octet::ops
