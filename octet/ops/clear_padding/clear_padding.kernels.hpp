#pragma once

#include "octet/ops/clear_padding/clear_padding.hpp"
#include "octet/tensor/backend.hpp"

OCTET_KERNEL(clear_padding, const ops::RowGroups&, const Tensor& x)
