#pragma once

#include <array>

#include "octet/ops/quantize/spec.hpp"
#include "octet/tensor/stream.hpp"

// Codes of a matrix whose columns belong to up to three tensors, each with one scale per tensor: queries, keys and values of attention.

namespace octet::ops {

/// Neighbouring columns of a matrix [T, C] that are one tensor, behind those of the groups before it. The spec has one scale per tensor.
struct ColumnGroup {
  std::int64_t columns = 0;  // a multiple of 8; 0: no such group
  QuantizeSpec spec;
};
/// All columns of a matrix. Their formats are equal.
using ColumnGroups = std::array<ColumnGroup, 3>;

/// maxima[g] = max |x| over the columns of group g; NaN is ignored. x: f32 or bf16; maxima: f32 [3], overwritten; 0 for an empty group.
/// Throws ContractError on other shapes or dtypes.
void column_maxima(Stream&, const Tensor& x, const ColumnGroups&, const Tensor& maxima);

/// codes[t, c] = encode(x[t, c] * scale of c's group). Raises each group's spec.amax and adds to its health. Scales are known. x: f32 or
/// bf16 [T, C]; codes: [T, C] of the groups' format. Throws ContractError on other shapes, dtypes or specs.
void encode_columns(Stream&, const Tensor& x, const ColumnGroups&, const Tensor& codes);

/// x[t, c] = value(codes[t, c]) * descale of c's group, rounded to x's type. Throws as encode_columns does.
void decode_columns(Stream&, const Tensor& codes, const ColumnGroups&, const Tensor& x);

}  // namespace octet::ops
