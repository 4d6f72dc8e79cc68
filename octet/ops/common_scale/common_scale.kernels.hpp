#pragma once

#include "octet/ops/common_scale/common_scale.hpp"
#include "octet/tensor/backend.hpp"

/// Raises amax[0] to max |x|.
OCTET_KERNEL(tensor_maximum, const Tensor& x, const Tensor& amax)
OCTET_KERNEL(common_scales, const Tensor& amax, const Tensor& mu, const Tensor& scales)
OCTET_KERNEL(advance_mu, const ops::AdvanceMu&)
