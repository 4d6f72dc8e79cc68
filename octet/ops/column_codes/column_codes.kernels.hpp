#pragma once

#include "octet/ops/column_codes/column_codes.hpp"
#include "octet/tensor/backend.hpp"

/// Raises maxima, which are 0.
OCTET_KERNEL(column_maxima, const Tensor& x, const ops::ColumnGroups&, const Tensor& maxima)
OCTET_KERNEL(encode_columns, const Tensor& x, const ops::ColumnGroups&, const Tensor& codes)
OCTET_KERNEL(decode_columns, const Tensor& codes, const ops::ColumnGroups&, const Tensor& x)
