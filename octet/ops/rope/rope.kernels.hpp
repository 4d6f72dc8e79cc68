#pragma once

#include "octet/ops/rope/rope.hpp"
#include "octet/tensor/cpu/isa.hpp"

namespace octet::cpu {
OCTET_KERNEL(void rope_forward(const ops::RopeForward&))
OCTET_KERNEL(void rope_backward(const ops::RopeBackward&))
}  // namespace octet::cpu
