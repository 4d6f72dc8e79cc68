#pragma once

#include "octet/ops/common_scale/common_scale.hpp"
#include "octet/tensor/backend.hpp"

namespace octet::ops {
/// limits: i64 [T], the most codes of tensor t that may be the largest one.
struct MuStep {
  Tensor mu, counts, limits;
  MuGrowth growth;
};
}  // namespace octet::ops

/// Raises amax[0] to max |x|.
OCTET_KERNEL(tensor_maximum, const Tensor& x, const Tensor& amax)
OCTET_KERNEL(common_scales, const Tensor& amax, const Tensor& mu, const Tensor& scales)
OCTET_KERNEL(advance_mu, const ops::MuStep&)
