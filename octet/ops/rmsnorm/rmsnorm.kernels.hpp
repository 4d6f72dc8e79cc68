#pragma once

#include "octet/ops/rmsnorm/rmsnorm.hpp"
#include "octet/tensor/cpu/isa.hpp"

namespace octet::cpu {
OCTET_KERNEL(void rmsnorm_forward(const ops::RmsNormForward&))
OCTET_KERNEL(void rmsnorm_backward(const ops::RmsNormBackward&, float* dw_of_threads))
}  // namespace octet::cpu
