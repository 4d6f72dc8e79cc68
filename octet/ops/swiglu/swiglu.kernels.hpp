#pragma once

#include "octet/ops/swiglu/swiglu.hpp"
#include "octet/tensor/backend.hpp"

OCTET_KERNEL(swiglu_forward, const ops::Saved& x, const ops::Sink& y, ops::Gate)
OCTET_KERNEL(swiglu_backward, const Tensor& dy, const ops::Saved& x, const ops::Sink& dx, ops::Gate)
