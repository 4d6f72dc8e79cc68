#pragma once

#include "octet/ops/expert_map/expert_map.hpp"

namespace octet::ops {

/// y[t] = sum over k, in its order and in FP32, of x[row[t, k]]. x: [R, C]; y: [T, C], overwritten, or with `add` added to; both f32, bf16
/// or f16 of one dtype. Rows without a token are not read. The first choice of a token is one; later ones may be none. Throws ContractError
/// on other shapes or dtypes. The gradient is gather_rows().
void combine_rows(Stream&, const Tensor& x, const ExpertMap&, const Tensor& y, bool add = false);

}  // namespace octet::ops
