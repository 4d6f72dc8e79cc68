#pragma once

#include <cstdint>

#include "octet/ops/stored/view.hpp"
#include "octet/ops/sum_of_squares/sum_of_squares.hpp"
#include "octet/tensor/backend.hpp"

namespace octet::ops {
/// Values of a variable that are summed on their own: whole groups.
inline constexpr std::int64_t sum_piece_values = 16384;
/// Part of one variable.
struct SumPiece {
  StoredView values;
  std::int64_t begin, count;
};
/// Sums of pieces, and their maxima.
struct SumPartial {
  Tensor sums;    // f64 [pieces + variables]
  Tensor maxima;  // f32 [pieces]
};
}  // namespace octet::ops

namespace octet::cpu {
namespace v3 {
/// sums[i] = sum of the squares of pieces[i], maxima[i] = its largest magnitude.
void sum_of_squares(const ops::SumPiece* pieces, std::int64_t count, double* sums, float* maxima);
}  // namespace v3
namespace v4 {
void sum_of_squares(const ops::SumPiece* pieces, std::int64_t count, double* sums, float* maxima);
}  // namespace v4
}  // namespace octet::cpu

namespace octet::cuda {
void sum_of_squares(Queue, const ops::SumOfSquares&, const ops::SumPartial&);
}  // namespace octet::cuda
