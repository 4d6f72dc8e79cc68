#pragma once

#include "octet/tensor/cpu/isa.hpp"
#include "octet/tensor/tensor.hpp"

namespace octet::cpu {
OCTET_KERNEL(void add(const Tensor& a, const Tensor& b, const Tensor& out))
}  // namespace octet::cpu
