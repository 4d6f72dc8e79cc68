#pragma once

#include "octet/ops/shared_scale/shared_scale.hpp"
#include "octet/tensor/backend.hpp"

namespace octet::cuda {
void update_shared_scale(Queue, const ops::SharedScale&);
}  // namespace octet::cuda
