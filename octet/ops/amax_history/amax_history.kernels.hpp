#pragma once

#include "octet/ops/amax_history/amax_history.hpp"
#include "octet/tensor/cpu/isa.hpp"

namespace octet::cpu {
OCTET_KERNEL(void advance_amax_history(const ops::AmaxHistory&))
}  // namespace octet::cpu
