#pragma once

#include "octet/ops/expert_map/expert_map.hpp"

namespace octet::ops {

/// Matrices of E experts, one after the other: [E N, K] as a row operand, or its transpose [K, E N] as a column operand. Expert e has rows,
/// or columns, [e N, (e + 1) N). One quantizer encodes the stack: its blocks do not straddle experts, since N is a multiple of a block's
/// rows. A scale per tensor may be one of each expert (quantize_stack()).
///
/// Groups along M: rows of each expert times its matrix.
///
///   d[r, n] (+)= sum_k a[r, k] * b[e][n, k]      b = stack [E N, K] (forward), or
///   d[r, k] (+)= sum_n a[r, n] * b[e][n, k]      b = the columns of it, [K, E N] (gradient of the input)
///
/// a: [R, ...] operand of rows; d: [R, ...] f32, bf16 or f16. Rows that no token has may hold anything in `a`, NaN too, and
/// are undefined in d.
struct GroupedRowsGemm {
  const Quantized& a;
  const Quantized& stack;  // [E N, K], or with stack_columns [K, E N]
  bool stack_columns = false;
  RowGroups groups;
  Tensor d;
  bool accumulate = false;
  bool fast_accumulation = false;
};
void grouped_gemm(Stream&, const GroupedRowsGemm&);

/// Groups along K: the gradient of the stack.
///
///   d[e][m, n] (+)= sum over rows r of group e of a[m, r] * b[n, r]
///
/// a: [M, R], b: [N, R] operands of columns, whose codes and scales of rows without a token are those of zeros; d: [E M, N] f32 or bf16. A
/// group without rows adds nothing, or stores zeros.
struct GroupedColumnsGemm {
  const Quantized& a;
  const Quantized& b;
  RowGroups groups;
  Tensor d;
  bool accumulate = false;
  bool fast_accumulation = false;
};
void grouped_gemm(Stream&, const GroupedColumnsGemm&);

// Both: formats, scales and accumulation as in gemm.hpp. One launch or a fixed number of them, for every E. Limits of groups are read on
// the device; FLOPs are counted for the bound of the rows on the null device. Throw ContractError on other shapes or formats.

}  // namespace octet::ops
