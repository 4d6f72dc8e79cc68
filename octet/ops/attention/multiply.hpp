#pragma once

// Only for *.cpu.cpp files: the matrix products of attention, on f32 blocks that stay in a core's cache. oneDNN's sgemm would pack its
// operands for each of these small products; here blocks are packed once in the layout of the inner loop.

#include "octet/tensor/cpu/lanes.hpp"

namespace octet::cpu::OCTET_ISA {

/// Rows that are computed at once; with the columns of a strip they fill the register file.
inline constexpr std::int64_t strip = 6;
inline constexpr int strip_vectors = width == 16 ? 4 : 2;

/// Element (m, k) is at data[m * row + k * step].
struct Left {
  const float* data;
  std::int64_t row, step;
};
/// Element (k, n) is at data[k * row + n].
struct Right {
  const float* data;
  std::int64_t row;
};

/// c[m, n] (+)= sum_k a[m, k] b[k, n] for `strip` rows and `vectors` registers of columns; one chain of fused multiply-adds for each
/// element, in order of k (at least one), so the bits do not depend on how a product is divided into rows and columns.
template <int vectors>
OCTET_HD void multiply_tile(std::int64_t depth, Left a, Right b, float* c, std::int64_t c_row, bool accumulate) {
  Vec sum[strip][vectors];
#pragma GCC unroll 6
  for (int m = 0; m < strip; ++m)
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) sum[m][v] = accumulate ? load_raw<Vec>(c + m * c_row, Full{v * width}) : Vec{};
  const float *left = a.data, *right_row = b.data;
  do {
    Vec right[vectors];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) right[v] = load_raw<Vec>(right_row, Full{v * width});
#pragma GCC unroll 6
    for (int m = 0; m < strip; ++m) {
      const Vec x = splat<Vec>(left[m * a.row]);
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) sum[m][v] = fused_multiply_add(x, right[v], sum[m][v]);
    }
    left += a.step, right_row += b.row;
  } while (--depth > 0);
#pragma GCC unroll 6
  for (int m = 0; m < strip; ++m)
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) store_raw(c + m * c_row, Full{v * width}, sum[m][v]);
}

/// The same for any number of columns that is a multiple of 16.
inline void multiply_strip(std::int64_t columns, std::int64_t depth, Left a, Right b, float* c, std::int64_t c_row, bool accumulate) {
  std::int64_t n = 0;
  for (; n + strip_vectors * width <= columns; n += strip_vectors * width)
    multiply_tile<strip_vectors>(depth, a, {b.data + n, b.row}, c + n, c_row, accumulate);
  if constexpr (strip_vectors == 4) {
    const std::int64_t rest = (columns - n) / width;
    if (rest == 3) multiply_tile<3>(depth, a, {b.data + n, b.row}, c + n, c_row, accumulate);
    if (rest == 2) multiply_tile<2>(depth, a, {b.data + n, b.row}, c + n, c_row, accumulate);
    if (rest == 1) multiply_tile<1>(depth, a, {b.data + n, b.row}, c + n, c_row, accumulate);
  }
}

}  // namespace octet::cpu::OCTET_ISA
