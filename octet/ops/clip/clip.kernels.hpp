#pragma once

#include "octet/ops/clip/clip.hpp"
#include "octet/tensor/backend.hpp"

namespace octet::cuda {
void clip(Queue, const ops::Clip&);
}  // namespace octet::cuda
