#pragma once

#include "octet/ops/layernorm/layernorm.hpp"
#include "octet/tensor/backend.hpp"

OCTET_KERNEL(layernorm_forward, const ops::LayerNormForward&)
OCTET_KERNEL(layernorm_add, const ops::LayerNormAdd&)
OCTET_KERNEL(layernorm_backward, const ops::LayerNormBackward&, const Tensor& sums_of_workers)
