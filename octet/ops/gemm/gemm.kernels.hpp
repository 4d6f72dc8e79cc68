#pragma once

#include "octet/ops/gemm/gemm.hpp"
#include "octet/tensor/backend.hpp"

/// d = bf16(alpha * sums + bias[column]); sums f32 like d; bias f32 or null.
OCTET_KERNEL(round_sums, const Tensor& sums, float alpha, const float* bias, const Tensor& d)
/// d += alpha * sums + bias[column]; sums and d f32; bias f32 or null.
OCTET_KERNEL(add_sums, const Tensor& sums, float alpha, const float* bias, const Tensor& d)
/// db[n] += sum_m x[m, n].
OCTET_KERNEL(add_column_sums, const Tensor& x, const Tensor& db)
