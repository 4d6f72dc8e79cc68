#pragma once

#include "octet/ops/adapter_blocks/adapter_blocks.math.hpp"
#include "octet/tensor/backend.hpp"
#include "octet/tensor/tensor.hpp"

OCTET_KERNEL(spread_blocks, const Tensor& from, const ops::RowBlocks& blocks, float factor, const Tensor& to)
OCTET_KERNEL(collect_blocks, const Tensor& from, const ops::RowBlocks& blocks, float factor, bool accumulate, const Tensor& to)
