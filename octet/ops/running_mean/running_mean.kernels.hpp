#pragma once

#include "octet/tensor/backend.hpp"
#include "octet/tensor/tensor.hpp"

/// `descale`: the factor of all codes, f32 [1], or empty.
OCTET_KERNEL(running_mean, const Tensor& codes, const Tensor& descale, float share, const Tensor& mean)
