#pragma once

#include "octet/ops/normal/normal.hpp"
#include "octet/tensor/backend.hpp"
#include "octet/tensor/cut_positions.hpp"

namespace octet::ops {
struct FillStoredNormal {
  std::uint64_t key;
  float deviation;
  const StoredSlice& out;
  Tensor maximum;       // f32 [1], 0: per-tensor scales only
  CutPositions places;  // of the variable's values
};
}  // namespace octet::ops

OCTET_KERNEL(fill_normal, std::uint64_t key, float deviation, const Tensor& x, std::int64_t first)
OCTET_KERNEL(fill_stored_normal, const ops::FillStoredNormal&)
