#pragma once

#include "octet/ops/gelu/gelu.hpp"
#include "octet/tensor/backend.hpp"

OCTET_KERNEL(gelu_forward, const ops::Saved& x, const ops::Sink& y)
OCTET_KERNEL(gelu_backward, const Tensor& dy, const ops::Saved& x, const ops::Sink& dx)
