#pragma once

#include <cstdint>

#include "octet/tensor/cpu/isa.hpp"

namespace octet::ops {
/// Part of one tensor.
struct SumPiece {
  const float* data;
  std::int64_t count;
};
}  // namespace octet::ops

namespace octet::cpu {
/// out[i] = sum of the squares of pieces[i].
OCTET_KERNEL(void sum_of_squares(const ops::SumPiece* pieces, std::int64_t count, double* out))
}  // namespace octet::cpu
