#pragma once

#include "octet/ops/rmsnorm/rmsnorm.hpp"
#include "octet/tensor/backend.hpp"

OCTET_KERNEL(rmsnorm_forward, const ops::RmsNormForward&)
OCTET_KERNEL(rmsnorm_add, const ops::RmsNormAdd&)
OCTET_KERNEL(rmsnorm_backward, const ops::RmsNormBackward&, const Tensor& dw_of_workers)
