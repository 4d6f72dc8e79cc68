#pragma once

#include "octet/ops/columns/columns.hpp"

namespace octet::ops {

/// Columns of a matrix kept between -limit and limit, of f32, bf16 or f16. `columns` says which are copied; unlike there, both ranges of
/// memory may also be the same one:
///
///   to[t, to_column + c] = min(limit, max(-limit, from[t, from_column + c])); NaN stays
///
/// Bit c % 8 of outside[t, c / 8] is 1 where a value was below -limit or above limit.
struct ClampColumns {
  CopyColumns columns;
  float limit = 0;
  Tensor outside = {};  // u8 [T, clamp_bytes(columns)]; empty: not wanted
};
/// Bytes of a row of `outside`.
constexpr std::int64_t clamp_bytes(std::int64_t columns) { return ceil_div(columns, 8); }
/// Throws ContractError on other shapes or dtypes, and on a limit that is not above 0.
void clamp_columns(Stream&, const ClampColumns&);

/// The gradient's columns: copied, and 0 where `outside` has a 1. The memory is as above.
struct ClampColumnsBackward {
  CopyColumns columns;
  Tensor outside;
};
void clamp_columns_backward(Stream&, const ClampColumnsBackward&);

}  // namespace octet::ops
