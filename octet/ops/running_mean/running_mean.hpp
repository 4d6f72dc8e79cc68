#pragma once

#include "octet/tensor/stream.hpp"

namespace octet::ops {

/// mean += (x - mean) * share, element by element in FP32: with share = 1 / n at the n-th call, the mean of all x so far, each with equal
/// weight. mean: f32, x: f32 or bf16 of the same shape. Throws ContractError on other shapes or dtypes.
void running_mean(Stream&, const Tensor& x, float share, const Tensor& mean);

}  // namespace octet::ops
