#pragma once

#include <span>

#include "octet/tensor/storage.hpp"
#include "octet/tensor/stream.hpp"

namespace octet::ops {

/// sums[i] (+)= sum of x[i]^2,   total (+)= sum_i of the new sums' increments, in order,   maxima[i] = max |x[i]|, with `accumulate` also
/// of its old value. x: variables of any shape and storage, which are decoded in the pass; sums: f64 [x.size()];
/// total: f64 [1] or empty; maxima: f32 [x.size()] or empty. Squares are exact and added in FP64 over pieces of 16384 values whose sums are
/// added in order: the same bits for any number of threads; on a GPU in another order, always the same. NaN and infinity go through to the
/// sums; NaN is no part of a maximum, which has the same bits everywhere.
struct SumOfSquares {
  std::span<const Stored> x;
  Tensor sums;
  Tensor total = {};
  Tensor maxima = {};
  bool accumulate = false;
};
/// Throws ContractError on other shapes, dtypes or storages. Workspace, from scratch: f64 [pieces + variables] and f32 [pieces].
void sum_of_squares(Stream&, const SumOfSquares&);

/// The same for one tensor of f32 or bf16: sum f64 [1].
void sum_of_squares(Stream&, const Tensor& x, const Tensor& sum, bool accumulate = false);

}  // namespace octet::ops
