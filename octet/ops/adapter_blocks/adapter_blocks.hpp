#pragma once

#include <span>

#include "octet/tensor/stream.hpp"

namespace octet::ops {

/// Rows [first, first + rows) of a matrix whose other rows are in other blocks, or in none.
struct RowBlock {
  std::int64_t first = 0, rows = 0;
};
/// The most blocks of one matrix: queries, keys and values are three.
inline constexpr std::size_t most_row_blocks = 4;

// Small matrices of one width, each for some rows of a larger one, and the same as blocks of one matrix for a GEMM. N is the sum of the
// blocks' rows, and s[b] that of those before b:
//
//   spread    to[first[b] + i, R b + c] = factor * from[s[b] + i, c],   all else 0       from [N, R], to [out, R blocks]
//   collect   to[s[b] + i, c] (+)= factor * from[first[b] + i, R b + c]                  from [out, R blocks], to [N, R]
//
// The second is the transpose of the first. Throw ContractError on other shapes or dtypes, blocks that overlap or do not ascend, and more
// than most_row_blocks of them.

/// One dtype: f32, bf16 or f16. Products are rounded once.
void spread_blocks(Stream&, const Tensor& from, std::span<const RowBlock>, float factor, const Tensor& to);
/// from: f32; to: f32 or bf16. Sums are made in FP32.
void collect_blocks(Stream&, const Tensor& from, std::span<const RowBlock>, float factor, bool accumulate, const Tensor& to);

}  // namespace octet::ops
