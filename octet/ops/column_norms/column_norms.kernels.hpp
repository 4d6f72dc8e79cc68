#pragma once

#include "octet/ops/column_norms/column_norms.hpp"
#include "octet/tensor/backend.hpp"

OCTET_KERNEL(column_norms, const ops::ColumnNorms& a)
