#pragma once

#include "octet/tensor/storage.hpp"
#include "octet/tensor/stream.hpp"

namespace octet::ops {

/// mean += (x - mean) * share, element by element in FP32: with share = 1 / n at the n-th call, the mean of all x so far, each with equal
/// weight. mean: f32, x: f32, bf16, f16 or e4m3_tensor of the same shape. Throws ContractError on other shapes or storages.
void running_mean(Stream&, const Stored& x, float share, const Tensor& mean);
/// The same of plain values.
void running_mean(Stream&, const Tensor& x, float share, const Tensor& mean);

}  // namespace octet::ops
