#pragma once

// Only for *.cuda.cu files: eight values to eight codes and back, counts of codes, and bytes turned from rows into columns.

#include <type_traits>

#include "octet/ops/quantize/cuda/eight.cuh"

namespace octet::cuda {

/// Codes of two floats, the first in the low byte: encode<Format>() of both, by one instruction (which agrees on all floats: it saturates,
/// and any NaN becomes 0x7F). The second of two such instructions also joins their results.
template <class Format>
__device__ __forceinline__ unsigned encode_two(float low, float high) {
  std::uint16_t codes;
  if constexpr (std::is_same_v<Format, E4M3>) asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(codes) : "f"(high), "f"(low));
  else asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(codes) : "f"(high), "f"(low));
  return codes;
}

template <class Format>
__device__ __forceinline__ unsigned encode_four(float a, float b, float c, float d) {
  unsigned codes;
  if constexpr (std::is_same_v<Format, E4M3>)
    asm("{.reg .b16 low, high; cvt.rn.satfinite.e4m3x2.f32 low, %2, %1; cvt.rn.satfinite.e4m3x2.f32 high, %4, %3; mov.b32 %0, {low, high};}"
        : "=r"(codes)
        : "f"(a), "f"(b), "f"(c), "f"(d));
  else
    asm("{.reg .b16 low, high; cvt.rn.satfinite.e5m2x2.f32 low, %2, %1; cvt.rn.satfinite.e5m2x2.f32 high, %4, %3; mov.b32 %0, {low, high};}"
        : "=r"(codes)
        : "f"(a), "f"(b), "f"(c), "f"(d));
  return codes;
}

/// The values of the two low codes of a word, two FP16 in a word: every code is one.
template <class Format>
__device__ __forceinline__ unsigned halves_of(unsigned codes) {
  unsigned halves;
  if constexpr (std::is_same_v<Format, E4M3>) asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"(std::uint16_t(codes)));
  else asm("cvt.rn.f16x2.e5m2x2 %0, %1;" : "=r"(halves) : "h"(std::uint16_t(codes)));
  return halves;
}
template <class Format>
__device__ __forceinline__ void decode_two(unsigned codes, float& low, float& high) {
  fp16_values(halves_of<Format>(codes), low, high);
}
/// The value of the code in the low byte.
template <class Format>
__device__ __forceinline__ float decode_one(unsigned code) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(std::uint16_t(halves_of<Format>(code) & 0xFFFF)));
  return value;
}

/// Codes of x[j] * scale(j) in the bytes of two words. Not by encode_four(): kernels that need all registers would keep more in local
/// memory.
template <class Format, class T, class Scale>
__device__ __forceinline__ uint2 encode_eight(const Eight<T>& x, const Scale& scale) {
  unsigned two[4];
#pragma unroll
  for (int j = 0; j < 8; j += 2) two[j / 2] = encode_two<Format>(x[j] * scale(j), x[j + 1] * scale(j + 1));
  return make_uint2(__byte_perm(two[0], two[1], 0x5410), __byte_perm(two[2], two[3], 0x5410));
}

/// Codes of x[j] as they are.
template <class Format>
__device__ __forceinline__ uint2 encode_eight(const Eight<Bf16>& x) {
  return make_uint2(encode_four<Format>(x[0], x[1], x[2], x[3]), encode_four<Format>(x[4], x[5], x[6], x[7]));
}

__device__ __forceinline__ unsigned byte_of(uint2 codes, int j) { return ((j < 4 ? codes.x : codes.y) >> (j % 4 * 8)) & 0xFF; }

/// The high bits of the bytes whose code's magnitude is not 0, and of those that are NaN (in both formats 0x7F is one; the encoder makes
/// no other).
__device__ __forceinline__ unsigned nonzero_bytes(unsigned codes) { return ((codes & 0x7F7F7F7Fu) + 0x7F7F7F7Fu) & 0x80808080u; }
__device__ __forceinline__ unsigned nan_bytes(unsigned codes) { return ((codes & 0x7F7F7F7Fu) + 0x01010101u) & 0x80808080u; }
__device__ __forceinline__ int nonzero_of(const uint2* four) {
  unsigned m = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i) m |= nonzero_bytes(four[i].x) >> 2 * i | nonzero_bytes(four[i].y) >> (2 * i + 1);
  return __popc(m);
}
__device__ __forceinline__ unsigned nan_of(uint2 codes) { return nan_bytes(codes.x) | nan_bytes(codes.y); }

/// Rows 0 .. 3 of four bytes each to columns.
__device__ __forceinline__ void turn_four(const unsigned (&row)[4], unsigned (&column)[4]) {
  const unsigned a = __byte_perm(row[0], row[1], 0x5140), b = __byte_perm(row[2], row[3], 0x5140);
  const unsigned c = __byte_perm(row[0], row[1], 0x7362), d = __byte_perm(row[2], row[3], 0x7362);
  column[0] = __byte_perm(a, b, 0x5410), column[1] = __byte_perm(a, b, 0x7632);
  column[2] = __byte_perm(c, d, 0x5410), column[3] = __byte_perm(c, d, 0x7632);
}

/// Eight rows of eight bytes to columns.
__device__ __forceinline__ void turn_eight(const uint2 (&row)[8], uint2 (&column)[8]) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    unsigned top[4], low[4], from[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) from[i] = half ? row[i].y : row[i].x;
    turn_four(from, top);
#pragma unroll
    for (int i = 0; i < 4; ++i) from[i] = half ? row[4 + i].y : row[4 + i].x;
    turn_four(from, low);
#pragma unroll
    for (int j = 0; j < 4; ++j) column[4 * half + j] = make_uint2(top[j], low[j]);
  }
}

}  // namespace octet::cuda
