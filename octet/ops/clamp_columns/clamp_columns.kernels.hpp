#pragma once

#include "octet/ops/clamp_columns/clamp_columns.hpp"
#include "octet/tensor/backend.hpp"

OCTET_KERNEL(clamp_columns, const ops::ClampColumns&)
OCTET_KERNEL(clamp_columns_backward, const ops::ClampColumnsBackward&)
