#pragma once

#include "octet/ops/gelu/gelu.hpp"
#include "octet/tensor/cpu/isa.hpp"

namespace octet::cpu {
OCTET_KERNEL(void gelu_forward(const Tensor& x, const ops::Sink& y))
OCTET_KERNEL(void gelu_backward(const Tensor& dy, const Tensor& x, const ops::Sink& dx))
}  // namespace octet::cpu
