#pragma once

#include "octet/tensor/stream.hpp"

namespace octet::ops {

/// out = a + b, element by element: the residual sum. All three of one shape and dtype, f32, bf16 or f16; out may be a or b. The sum is
/// made in FP32 and rounded once. Throws ContractError on other shapes or dtypes.
void add(Stream&, const Tensor& a, const Tensor& b, const Tensor& out);

/// Throws ContractError unless all three are alike: for ops that add and do more.
void check_add(const Tensor& a, const Tensor& b, const Tensor& out);

}  // namespace octet::ops
