#pragma once

#include <array>

#include "octet/tensor/stream.hpp"

namespace octet::ops {

/// `count` groups of D neighbouring columns from `first` on, such as the heads of queries. w: f32 [D].
struct NormedColumns {
  Tensor w;
  std::int64_t first = 0, count = 0;
};

/// In place, for each group v of a row of x:  v[c] = v[c] / sqrt(mean_c v[c]^2 + eps) * (offset + w[c]).
/// x: [T, C] f32, bf16 or f16. Groups of both ranges do not overlap. Bits are those of rmsnorm_forward() of a matrix of the groups; on a
/// GPU, of groups with up to 1024 columns.
struct ColumnNorms {
  Tensor x;
  std::array<NormedColumns, 2> ranges;
  float eps, offset = 0;
};
/// Throws ContractError on other shapes or dtypes, and on columns that x does not have.
void column_norms(Stream&, const ColumnNorms&);

}  // namespace octet::ops
