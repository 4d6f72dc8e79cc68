#pragma once

#include "octet/ops/cross_entropy/cross_entropy.hpp"
#include "octet/tensor/cpu/isa.hpp"

namespace octet::cpu {
OCTET_KERNEL(void cross_entropy(const ops::CrossEntropy&))
}  // namespace octet::cpu
