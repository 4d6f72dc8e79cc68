#pragma once

#include "octet/ops/rope/rope.hpp"
#include "octet/tensor/backend.hpp"

OCTET_KERNEL(rope_forward, const ops::RopeForward&)
OCTET_KERNEL(rope_backward, const ops::RopeBackward&)
