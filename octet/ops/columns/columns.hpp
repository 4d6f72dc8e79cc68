#pragma once

#include "octet/tensor/stream.hpp"

namespace octet::ops {

/// Columns of a matrix, from `first` on.
struct ColumnsOf {
  Tensor of;
  std::int64_t first = 0;
};

/// to[t, to_column + c] = from[t, from_column + c] for 0 <= c < columns. from: [T, A], to: [T, B], of one dtype of whole bytes; the two
/// ranges of memory do not overlap.
struct CopyColumns {
  Tensor from;
  std::int64_t from_column = 0;
  Tensor to;
  std::int64_t to_column = 0;
  std::int64_t columns = 0;
};
/// Throws ContractError on other shapes or dtypes, and on columns that the tensors do not have.
void copy_columns(Stream&, const CopyColumns&);

}  // namespace octet::ops
