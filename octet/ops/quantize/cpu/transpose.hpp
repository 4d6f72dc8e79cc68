#pragma once

// Only for *.cpu.cpp files: transposes bytes or BF16 in registers.

#include "octet/tensor/cpu/lanes.hpp"

namespace octet::cpu::OCTET_ISA {

typedef std::uint8_t Bytes __attribute__((vector_size(4 * width)));
/// Rows that one step turns: as many as a register has values.
template <class T>
inline constexpr int transpose_rows = 4 * width / int(sizeof(T));

/// Values of the lower, or upper, halves of a and b's 128-bit parts in turn; T has one or two bytes.
template <class T>
OCTET_HD Bytes interleave_low(Bytes a, Bytes b) {
#ifdef OCTET_ISA_v4
  const __m512i x = (__m512i)a, y = (__m512i)b;
  return (Bytes)(sizeof(T) == 1 ? _mm512_unpacklo_epi8(x, y) : _mm512_unpacklo_epi16(x, y));
#else
  const __m256i x = (__m256i)a, y = (__m256i)b;
  return (Bytes)(sizeof(T) == 1 ? _mm256_unpacklo_epi8(x, y) : _mm256_unpacklo_epi16(x, y));
#endif
}
template <class T>
OCTET_HD Bytes interleave_high(Bytes a, Bytes b) {
#ifdef OCTET_ISA_v4
  const __m512i x = (__m512i)a, y = (__m512i)b;
  return (Bytes)(sizeof(T) == 1 ? _mm512_unpackhi_epi8(x, y) : _mm512_unpackhi_epi16(x, y));
#else
  const __m256i x = (__m256i)a, y = (__m256i)b;
  return (Bytes)(sizeof(T) == 1 ? _mm256_unpackhi_epi8(x, y) : _mm256_unpackhi_epi16(x, y));
#endif
}

/// 16 bytes from each of the rows 0, step, ... in the 128-bit parts of a register.
template <class T>
OCTET_HD Bytes gather_rows(const T* from, std::int64_t step) {
  const auto row = [&](int i) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i * step)); };
#ifdef OCTET_ISA_v4
  __m512i v = _mm512_zextsi128_si512(row(0));
  v = _mm512_inserti32x4(v, row(1), 1);
  v = _mm512_inserti32x4(v, row(2), 2);
  return (Bytes)_mm512_inserti32x4(v, row(3), 3);
#else
  return (Bytes)_mm256_inserti128_si256(_mm256_castsi128_si256(row(0)), row(1), 1);
#endif
}

/// out[c] holds value c of each of the rows 0 .. transpose_rows - 1 of `from`, for the columns that 16 bytes hold.
template <class T>
OCTET_HD void transpose_16_bytes(const T* from, std::int64_t stride, Bytes* out) {
  constexpr int n = 16 / int(sizeof(T));
  Bytes v[n], next[n];
  for (int r = 0; r < n; ++r) v[r] = gather_rows(from + r * stride, n * stride);
  // Rounds of a perfect shuffle of rows r and r + n/2: after each, a register's index gains one bit of the column.
  for (int columns = 1; columns < n; columns *= 2) {
    for (int r = 0; r < n / 2; ++r)
      next[2 * r] = interleave_low<T>(v[r], v[r + n / 2]), next[2 * r + 1] = interleave_high<T>(v[r], v[r + n / 2]);
    for (int r = 0; r < n; ++r) v[r] = next[r];
  }
  for (int r = 0; r < n; ++r) out[r] = v[r];
}

/// to[c * to_stride + r] = from[r * from_stride + c] for r < rows, c < cols; strides in values. `from` must be readable up to the next
/// multiples of transpose_rows rows and of 16 bytes of columns.
template <class T>
OCTET_HD void transpose(const T* from, std::int64_t from_stride, int rows, int cols, T* to, std::int64_t to_stride) {
  constexpr int step = 16 / int(sizeof(T));
  for (int c = 0; c < cols; c += step)  // few columns at a time: where they go may be a multiple of a page apart, in one set of a cache
    for (int r = 0; r < rows; r += transpose_rows<T>) {
      const int n = rows - r < transpose_rows<T> ? rows - r : transpose_rows<T>, m = cols - c < step ? cols - c : step;
      Bytes columns[step];
      transpose_16_bytes(from + r * from_stride + c, from_stride, columns);
      T* const at = to + c * to_stride + r;
      if (n == transpose_rows<T>)
        for (int i = 0; i < m; ++i) __builtin_memcpy(at + i * to_stride, &columns[i], sizeof(Bytes));
      else
        for (int i = 0; i < m; ++i) __builtin_memcpy(at + i * to_stride, &columns[i], std::size_t(n) * sizeof(T));
    }
}

}  // namespace octet::cpu::OCTET_ISA
