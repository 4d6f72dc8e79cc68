#pragma once

#include "octet/ops/columns/columns.hpp"
#include "octet/tensor/backend.hpp"

OCTET_KERNEL(copy_columns, const ops::CopyColumns& a)
