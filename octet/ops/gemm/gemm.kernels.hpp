#pragma once

#include "octet/ops/gemm/gemm.hpp"
#include "octet/tensor/cpu/isa.hpp"

namespace octet::cpu {
/// d = bf16(alpha * sums + bias[column]); sums f32 like d; bias f32 or null.
OCTET_KERNEL(void round_sums(const Tensor& sums, float alpha, const float* bias, const Tensor& d))
/// db[n] += sum_m x[m, n].
OCTET_KERNEL(void add_column_sums(const Tensor& x, const Tensor& db))
}  // namespace octet::cpu
