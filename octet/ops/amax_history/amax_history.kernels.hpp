#pragma once

#include "octet/ops/amax_history/amax_history.hpp"
#include "octet/tensor/backend.hpp"

OCTET_KERNEL(advance_amax_history, const ops::AmaxHistory&)
