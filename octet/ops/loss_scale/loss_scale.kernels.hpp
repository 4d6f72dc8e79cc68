#pragma once

#include "octet/ops/loss_scale/loss_scale.hpp"
#include "octet/tensor/backend.hpp"

namespace octet::cuda {
void move_loss_scale(Queue, const ops::LossScale&);
}  // namespace octet::cuda
