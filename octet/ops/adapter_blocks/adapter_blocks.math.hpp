#pragma once

#include <cstdint>

#include "octet/base/hd.hpp"
#include "octet/numerics/formats.hpp"
#include "octet/ops/adapter_blocks/adapter_blocks.hpp"

namespace octet::ops {

/// The blocks of a matrix, as kernels get them.
struct RowBlocks {
  RowBlock blocks[most_row_blocks];
  int count = 0;
};

/// A row of one of the blocks.
struct BlockRow {
  int block = -1;           // -1: of none
  std::int64_t narrow = 0;  // in the matrix [N, R]
};

// Places that are not used have no rows. On a GPU the loop is unrolled, so that no block is indexed.
OCTET_HD BlockRow block_of_row(const RowBlocks& all, std::int64_t row) {
  BlockRow at;
  std::int64_t before = 0;
#ifdef __CUDACC__
#pragma unroll
#endif
  for (int b = 0; b < int(most_row_blocks); ++b) {
    const std::int64_t i = row - all.blocks[b].first;
    if (i >= 0 && i < all.blocks[b].rows) at.block = b, at.narrow = before + i;
    before += all.blocks[b].rows;
  }
  return at;
}

template <class T>
OCTET_HD float float_of_value(T x) {
  if constexpr (std::is_same_v<T, float>) return x;
  else return to_float(x);
}

/// to[row, c] of spread_blocks().
template <class T>
OCTET_HD T spread_value(const RowBlocks& all, const T* from, std::int64_t width, float factor, std::int64_t row, std::int64_t c) {
  const BlockRow at = block_of_row(all, row);
  if (at.block != int(c / width)) return from_float<T>(0.0f);
  return from_float<T>(factor * float_of_value(from[at.narrow * width + c % width]));
}

/// Adds row `row` of `from` to its row of collect_blocks(), or stores it; nothing for a row of no block.
template <class T>
OCTET_HD void collect_value(const RowBlocks& all, const float* from, std::int64_t width, float factor, bool accumulate, T* to,
                            std::int64_t row, std::int64_t c) {
  const BlockRow at = block_of_row(all, row);
  if (at.block < 0) return;
  T& sum = to[at.narrow * width + c];
  const float x = factor * from[(row * all.count + at.block) * width + c];
  sum = from_float<T>(accumulate ? float_of_value(sum) + x : x);
}

}  // namespace octet::ops
