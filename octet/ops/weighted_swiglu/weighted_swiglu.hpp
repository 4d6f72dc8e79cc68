#pragma once

#include "octet/ops/expert_map/expert_map.hpp"
#include "octet/ops/quantize/saved.hpp"

namespace octet::ops {

/// SwiGLU of the rows of experts, times the weight of each row's choice:
///
///   y[r, c] = w[source[r]] silu(g) u,   g = x[r, c], u = x[r, F + c];   0 for rows without a token, even where x holds NaN
///
/// With a limit L > 0: u is clamped to [-L, L] and g to at most L first, and the gradient of a clamped value is 0.
/// x: [R, 2 F] f32, bf16 or f16, or saved codes of it; w: f32 [T, K]; y: a sink of [R, F] and x's dtype. With `codes`, x is also encoded,
/// as swiglu_forward() does, except for rows without a token, whose codes are undefined. The weight comes before the second matrix, so the
/// sum over choices is a plain one and no output of an expert is kept. Source: Guo et al. 2025, "SonicMoE", section 3.
void weighted_swiglu_forward(Stream&, const Saved& x, const Tensor& w, const ExpertMap&, float limit, Sink& y, Sink* codes = nullptr);

/// With a = silu(g) u:  dw[source[r]] = sum over c of dy a;  da = w dy;  dx as swiglu_backward() of da. dw: f32 [T, K], overwritten, the
/// sum within the bound of an FP32 sum; dx: a sink of [R, 2 F], 0 for rows without a token. Workspace on a GPU, from scratch: f32
/// [R, ceil(F / 8)].
struct WeightedSwigluBackward {
  const Tensor& dy;
  const Saved& x;
  const Tensor& w;
  const ExpertMap& map;
  float limit = 0;
  Tensor dw;
};
void weighted_swiglu_backward(Stream&, const WeightedSwigluBackward&, Sink& dx);

}  // namespace octet::ops
