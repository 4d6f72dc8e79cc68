#pragma once

#include "octet/ops/swiglu/swiglu.hpp"
#include "octet/tensor/cpu/isa.hpp"

namespace octet::cpu {
OCTET_KERNEL(void swiglu_forward(const Tensor& x, const ops::Sink& y))
OCTET_KERNEL(void swiglu_backward(const Tensor& dy, const Tensor& x, const ops::Sink& dx))
}  // namespace octet::cpu
