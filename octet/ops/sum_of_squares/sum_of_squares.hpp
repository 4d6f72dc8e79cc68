#pragma once

#include <span>

#include "octet/tensor/stream.hpp"

namespace octet::ops {

/// sums[i] (+)= sum of x[i]^2,   total (+)= sum_i of the new sums' increments, in order.
/// x: f32 or bf16 tensors of any shape; sums: f64 [x.size()]; total: f64 [1] or empty. Squares are exact and added in FP64 over pieces of
/// 16384 values whose sums are added in order: the same bits for any number of threads; on a GPU in another order, always the same. NaN and
/// infinity go through.
struct SumOfSquares {
  std::span<const Tensor> x;
  Tensor sums;
  Tensor total = {};
  bool accumulate = false;
};
/// Throws ContractError on other shapes or dtypes. Workspace: f64 [pieces + tensors], from scratch.
void sum_of_squares(Stream&, const SumOfSquares&);

/// The same for one tensor: sum f64 [1].
void sum_of_squares(Stream&, const Tensor& x, const Tensor& sum, bool accumulate = false);

}  // namespace octet::ops
