#pragma once

// Only for *.cpu.cpp files: transposes bytes in registers.

#include "octet/tensor/cpu/lanes.hpp"

namespace octet::cpu::OCTET_ISA {

typedef std::uint8_t Bytes __attribute__((vector_size(4 * width)));
/// Rows that one step turns: as many as a register has bytes.
inline constexpr int transpose_rows = 4 * width;

OCTET_HD Bytes interleave_low(Bytes a, Bytes b) {
#ifdef OCTET_ISA_v4
  return (Bytes)_mm512_unpacklo_epi8((__m512i)a, (__m512i)b);
#else
  return (Bytes)_mm256_unpacklo_epi8((__m256i)a, (__m256i)b);
#endif
}
OCTET_HD Bytes interleave_high(Bytes a, Bytes b) {
#ifdef OCTET_ISA_v4
  return (Bytes)_mm512_unpackhi_epi8((__m512i)a, (__m512i)b);
#else
  return (Bytes)_mm256_unpackhi_epi8((__m256i)a, (__m256i)b);
#endif
}

/// 16 bytes from each of the rows r, r + 16, ... in the 128-bit quarters of a register.
OCTET_HD Bytes gather_rows(const std::uint8_t* from, std::int64_t stride) {
  const auto row = [&](int i) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + 16 * i * stride)); };
#ifdef OCTET_ISA_v4
  __m512i v = _mm512_zextsi128_si512(row(0));
  v = _mm512_inserti32x4(v, row(1), 1);
  v = _mm512_inserti32x4(v, row(2), 2);
  return (Bytes)_mm512_inserti32x4(v, row(3), 3);
#else
  return (Bytes)_mm256_inserti128_si256(_mm256_castsi128_si256(row(0)), row(1), 1);
#endif
}

/// out[c] holds byte c of each of the rows 0 .. transpose_rows - 1 of `from`, for 16 columns.
OCTET_HD void transpose_16_columns(const std::uint8_t* from, std::int64_t stride, Bytes* out) {
  Bytes a[16], b[16];
  for (int r = 0; r < 16; ++r) a[r] = gather_rows(from + r * stride, stride);
  // Four rounds of a perfect shuffle of rows r and r + 8: after each, a register's index gains one bit of the column.
  const auto shuffle = [](const Bytes* in, Bytes* to) {
    for (int r = 0; r < 8; ++r) to[2 * r] = interleave_low(in[r], in[r + 8]), to[2 * r + 1] = interleave_high(in[r], in[r + 8]);
  };
  shuffle(a, b), shuffle(b, a), shuffle(a, b), shuffle(b, out);
}

/// to[c * to_stride + r] = from[r * from_stride + c] for r < rows, c < cols. `from` must be readable up to the next multiples of
/// transpose_rows rows and 16 columns.
OCTET_HD void transpose_bytes(const std::uint8_t* from, std::int64_t from_stride, int rows, int cols, std::uint8_t* to, std::int64_t to_stride) {
  for (int r = 0; r < rows; r += transpose_rows) {
    const int n = rows - r < transpose_rows ? rows - r : transpose_rows;
    for (int c = 0; c < cols; c += 16) {
      Bytes columns[16];
      transpose_16_columns(from + r * from_stride + c, from_stride, columns);
      const int m = cols - c < 16 ? cols - c : 16;
      std::uint8_t* const at = to + c * to_stride + r;
      if (n == transpose_rows)
        for (int i = 0; i < m; ++i) __builtin_memcpy(at + i * to_stride, &columns[i], sizeof(Bytes));
      else
        for (int i = 0; i < m; ++i) __builtin_memcpy(at + i * to_stride, &columns[i], std::size_t(n));
    }
  }
}

}  // namespace octet::cpu::OCTET_ISA
