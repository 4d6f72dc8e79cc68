#pragma once

#include "octet/ops/adamw/adamw.hpp"
#include "octet/tensor/cpu/isa.hpp"

namespace octet::cpu {
OCTET_KERNEL(void adamw(const ops::AdamW&))
}  // namespace octet::cpu
