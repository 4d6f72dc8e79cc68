#pragma once

#include "octet/tensor/backend.hpp"
#include "octet/tensor/tensor.hpp"

OCTET_KERNEL(running_mean, const Tensor& x, float share, const Tensor& mean)
