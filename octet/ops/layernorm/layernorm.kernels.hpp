#pragma once

#include "octet/ops/layernorm/layernorm.hpp"
#include "octet/tensor/cpu/isa.hpp"

namespace octet::cpu {
OCTET_KERNEL(void layernorm_forward(const ops::LayerNormForward&))
OCTET_KERNEL(void layernorm_backward(const ops::LayerNormBackward&, float* sums_of_threads))
}  // namespace octet::cpu
