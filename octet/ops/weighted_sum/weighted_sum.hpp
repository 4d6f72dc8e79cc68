#pragma once

#include "octet/tensor/stream.hpp"

namespace octet::ops {

/// out = (a x + b s y) r, element by element in FP32, rounded once to the type of out, with
///   s = the gradient_scale of `step` (1 without it)
///   r = 1 / sqrt(squares) (1 without it; 0 where squares is 0, so that the sum of a matrix of zeros is 0)
/// If the skip flag of `step` is set, out = x. x and y: f32, bf16 or f16, of one type; out: one of these; all of one shape; out may be x or
/// y. y may be empty. step: f32 [12], an AdamWStep; squares: f64 [1]; either may be empty. Throws ContractError on other shapes or dtypes.
struct WeightedSum {
  float a = 1;
  Tensor x;
  float b = 0;
  Tensor y = {};
  Tensor out;
  Tensor squares = {};
  Tensor step = {};
};
void weighted_sum(Stream&, const WeightedSum&);

}  // namespace octet::ops
