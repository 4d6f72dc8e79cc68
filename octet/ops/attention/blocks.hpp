#pragma once

// Only for *.cpu.cpp files: blocks of a head's rows as f32, in the layouts that multiply.hpp reads.

#include "octet/ops/attention/qkv.hpp"
#include "octet/tensor/cpu/lanes.hpp"

namespace octet::cpu::OCTET_ISA {

/// A head's columns in some rows of a wider matrix.
template <class T>
struct HeadRows {
  T* data;
  std::int64_t stride, rows, columns;
};
/// Some columns of a matrix.
struct HeadColumns {
  std::int64_t first, count;
};
inline HeadColumns query_columns(const ops::QkvShape& s, std::int64_t head) { return {s.query_column(head), s.head_dim}; }
inline HeadColumns key_columns(const ops::QkvShape& s, std::int64_t kv_head) { return {s.key_column(kv_head), s.head_dim}; }
inline HeadColumns value_columns(const ops::QkvShape& s, std::int64_t kv_head) { return {s.value_column(kv_head), s.value_dim()}; }
inline HeadColumns out_columns(const ops::QkvShape& s, std::int64_t head) { return {s.out_column(head), s.value_dim()}; }

/// Rows [first, first + n) of x, in some columns.
template <class T>
HeadRows<T> rows_of(const Tensor& x, std::int64_t first, std::int64_t n, const HeadColumns& columns) {
  return {x.as<T>() + first * x.shape[1] + columns.first, x.shape[1], n, columns.count};
}
/// Keys or values, or their gradients, of `n` tokens of whole sequence `sequence`: in `apart` if that is given, else in `fused`, which has
/// the columns of queries, too. `columns`: in `fused`.
template <class T>
HeadRows<T> key_rows(const ops::QkvShape& heads, const Tensor& apart, const Tensor& fused, std::int64_t sequence, std::int64_t place,
                     std::int64_t n, const HeadColumns& columns) {
  const std::int64_t first = sequence * heads.whole() + place;
  if (apart) return rows_of<T>(apart, first, n, {columns.first - heads.key_column(0), columns.count});
  return rows_of<T>(fused, first, n, columns);
}

/// out [padded_rows, dim] = x * scale, and 0 in padding rows and columns.
template <class T>
void widen_rows(const HeadRows<const T>& x, float scale, std::int64_t padded_rows, std::int64_t dim, float* out) {
  for (std::int64_t r = 0; r < x.rows; ++r) {
    Lane{}.each(x.columns, [&](auto at) { Lane{}.store(out + r * dim, at, Lane{}.load(x.data + r * x.stride, at) * scale); });
    for (std::int64_t c = x.columns; c < dim; ++c) out[r * dim + c] = 0;
  }
  for (std::int64_t i = x.rows * dim; i < padded_rows * dim; ++i) out[i] = 0;
}

/// y = x [rows, dim] * scale of each row, rounded to T.
template <class T, class Scale>
void narrow_rows(const float* x, std::int64_t dim, const Scale& scale, const HeadRows<T>& y) {
  for (std::int64_t r = 0; r < y.rows; ++r) {
    const float factor = scale(r);
    Lane{}.each(y.columns, [&](auto at) { Lane{}.store(y.data + r * y.stride, at, Lane{}.load(x + r * dim, at) * factor); });
  }
}

/// y [8, 8] = transpose of x [8, 8], each with its floats between rows.
inline void transpose_8x8(const float* x, std::int64_t x_row, float* y, std::int64_t y_row) {
  __m256 r[8], s[8];
  for (int i = 0; i < 8; ++i) r[i] = _mm256_loadu_ps(x + i * x_row);
  for (int i = 0; i < 8; i += 2) s[i] = _mm256_unpacklo_ps(r[i], r[i + 1]), s[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
  for (int i = 0; i < 8; i += 4) {
    r[i] = _mm256_shuffle_ps(s[i], s[i + 2], 0x44), r[i + 1] = _mm256_shuffle_ps(s[i], s[i + 2], 0xEE);
    r[i + 2] = _mm256_shuffle_ps(s[i + 1], s[i + 3], 0x44), r[i + 3] = _mm256_shuffle_ps(s[i + 1], s[i + 3], 0xEE);
  }
  for (int i = 0; i < 4; ++i) {
    _mm256_storeu_ps(y + i * y_row, _mm256_permute2f128_ps(r[i], r[i + 4], 0x20));
    _mm256_storeu_ps(y + (i + 4) * y_row, _mm256_permute2f128_ps(r[i], r[i + 4], 0x31));
  }
}

/// y [cols, rows] = transpose of x [rows, cols], both dense and multiples of 8.
inline void transpose_block(const float* x, std::int64_t rows, std::int64_t cols, float* y) {
  for (std::int64_t c = 0; c < cols; c += 8)
    for (std::int64_t r = 0; r < rows; r += 8) transpose_8x8(x + r * cols + c, cols, y + c * rows + r, rows);
}

}  // namespace octet::cpu::OCTET_ISA
