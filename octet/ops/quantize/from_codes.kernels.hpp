#pragma once

#include "octet/ops/quantize/from_codes.hpp"
#include "octet/tensor/backend.hpp"

/// to[c, r] = from[r, c], bytes of two matrices.
OCTET_KERNEL(transpose_bytes, const Tensor& from, const Tensor& to)
/// to[j, i] = from[i, j] of `rows` x `cols` descales, each table with a row length of its own; padding of `to` is 1.
OCTET_KERNEL(transpose_descales, std::int64_t rows, std::int64_t cols, const Tensor& from, const Tensor& to)
