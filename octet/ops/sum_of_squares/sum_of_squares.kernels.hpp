#pragma once

#include <cstdint>

#include "octet/ops/sum_of_squares/sum_of_squares.hpp"
#include "octet/tensor/backend.hpp"

namespace octet::ops {
/// Values of a tensor that are summed on their own.
inline constexpr std::int64_t sum_piece_values = 16384;
/// Part of one tensor.
struct SumPiece {
  Tensor values;  // f32 or bf16
};
}  // namespace octet::ops

namespace octet::cpu {
namespace v3 {
/// out[i] = sum of the squares of pieces[i].
void sum_of_squares(const ops::SumPiece* pieces, std::int64_t count, double* out);
}  // namespace v3
namespace v4 {
void sum_of_squares(const ops::SumPiece* pieces, std::int64_t count, double* out);
}  // namespace v4
}  // namespace octet::cpu

namespace octet::cuda {
/// partial: f64, one for each piece of `sum_piece_values` values, then one for each tensor.
void sum_of_squares(Queue, const ops::SumOfSquares&, const Tensor& partial);
}  // namespace octet::cuda
