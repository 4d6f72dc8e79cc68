#pragma once

// Only for *.cuda.cu files: eight neighbouring values of a matrix row as one thread of a GPU holds them, rounded to the type in which they
// are stored, and maxima of their magnitudes.

#include "octet/tensor/cuda/pack.cuh"

namespace octet::cuda {

/// Larger magnitudes of the halves of two words of two BF16 each, of any sign; a NaN loses against any number.
__device__ __forceinline__ unsigned larger_magnitudes(unsigned a, unsigned b) {
  unsigned m;
  asm("max.xorsign.abs.bf16x2 %0, %1, %2;" : "=r"(m) : "r"(a), "r"(b));
  return m;
}

/// The same, but a NaN wins.
__device__ __forceinline__ unsigned larger_magnitudes_or_nan(unsigned a, unsigned b) {
  unsigned m;
  asm("max.NaN.xorsign.abs.bf16x2 %0, %1, %2;" : "=r"(m) : "r"(a), "r"(b));
  return m;
}

template <class T>
struct Eight;

template <>
struct Eight<Bf16> {
  unsigned word[4];

  static __device__ __forceinline__ Eight of(const Pack<8>& p) {
    Eight e;
#pragma unroll
    for (int j = 0; j < 4; ++j) e.word[j] = bf16_pair(p.v[2 * j], p.v[2 * j + 1]);
    return e;
  }
  /// p must be aligned to 16 bytes.
  static __device__ __forceinline__ Eight at(const Bf16* p) {
    const uint4 q = *reinterpret_cast<const uint4*>(p);
    return {{q.x, q.y, q.z, q.w}};
  }
  __device__ __forceinline__ void put(Bf16* p) const { *reinterpret_cast<uint4*>(p) = make_uint4(word[0], word[1], word[2], word[3]); }
  __device__ __forceinline__ void put_one(Bf16* p, int j) const { p->bits = std::uint16_t(word[j / 2] >> (j % 2 * 16)); }
  __device__ __forceinline__ float operator[](int j) const {
    return __uint_as_float(j % 2 ? word[j / 2] & 0xFFFF0000u : word[j / 2] << 16);
  }
  /// How many are not 0, in two halves of a word.
  __device__ __forceinline__ unsigned nonzero() const {
    unsigned n = 0;
#pragma unroll
    for (int j = 0; j < 4; ++j) n += __vminu2(word[j] & 0x7FFF7FFFu, 0x00010001u);
    return n;
  }
};

/// Values that are stored and never encoded.
template <>
struct Eight<Fp16> {
  uint4 word;

  static __device__ __forceinline__ Eight of(const Pack<8>& p) { return {packed<Fp16>(p)}; }
  static __device__ __forceinline__ Eight at(const Fp16* p) { return {*reinterpret_cast<const uint4*>(p)}; }
  __device__ __forceinline__ void put(Fp16* p) const { *reinterpret_cast<uint4*>(p) = word; }
};

template <>
struct Eight<float> {
  float v[8];

  static __device__ __forceinline__ Eight of(const Pack<8>& p) {
    Eight e;
#pragma unroll
    for (int j = 0; j < 8; ++j) e.v[j] = p.v[j];
    return e;
  }
  static __device__ __forceinline__ Eight at(const float* p) { return of(load<8>(p, 0)); }
  __device__ __forceinline__ void put(float* p) const {
    reinterpret_cast<float4*>(p)[0] = make_float4(v[0], v[1], v[2], v[3]);
    reinterpret_cast<float4*>(p)[1] = make_float4(v[4], v[5], v[6], v[7]);
  }
  __device__ __forceinline__ void put_one(float* p, int j) const { *p = v[j]; }
  __device__ __forceinline__ float operator[](int j) const { return v[j]; }
  __device__ __forceinline__ unsigned nonzero() const {
    unsigned n = 0;
#pragma unroll
    for (int j = 0; j < 8; ++j) n += v[j] != 0.0f;
    return n;
  }
};

/// The sum of a word's halves.
__device__ __forceinline__ int sum_of_halves(unsigned n) { return int(n & 0xFFFFu) + int(n >> 16); }

/// Eight running maxima of magnitudes, from 0; NaN is ignored.
template <class T>
struct Tops;

template <>
struct Tops<Bf16> {
  unsigned m[4]{};  // of any sign

  /// Element by element: maxima of columns.
  __device__ __forceinline__ void raise(const Eight<Bf16>& e) {
#pragma unroll
    for (int j = 0; j < 4; ++j) m[j] = larger_magnitudes(e.word[j], m[j]);
  }
  /// The same, but NaN stays.
  __device__ __forceinline__ void raise_or_nan(const Eight<Bf16>& e) {
#pragma unroll
    for (int j = 0; j < 4; ++j) m[j] = larger_magnitudes_or_nan(e.word[j], m[j]);
  }
  __device__ __forceinline__ void raise_from_lane(int distance) {
#pragma unroll
    for (int j = 0; j < 4; ++j) m[j] = larger_magnitudes(__shfl_xor_sync(~0u, m[j], distance), m[j]);
  }
  /// Maximum i is that of all of rows[i].
  static __device__ __forceinline__ Tops of_rows(const Eight<Bf16> (&rows)[8]) {
    Tops t;
#pragma unroll
    for (int i = 0; i < 8; i += 2) t.m[i / 2] = of_two_rows(rows[i], rows[i + 1]);
    return t;
  }
  static __device__ __forceinline__ unsigned of_two_rows(const Eight<Bf16>& first, const Eight<Bf16>& second) {
    unsigned most[2]{};
#pragma unroll
    for (int j = 0; j < 4; ++j) most[0] = larger_magnitudes(first.word[j], most[0]), most[1] = larger_magnitudes(second.word[j], most[1]);
    return larger_magnitudes(__byte_perm(most[0], most[1], 0x5410), __byte_perm(most[0], most[1], 0x7632));
  }
  __device__ __forceinline__ float operator[](int j) const {
    return __uint_as_float(j % 2 ? m[j / 2] & 0x7FFF0000u : (m[j / 2] & 0x7FFFu) << 16);
  }
  /// All eight as BF16.
  __device__ __forceinline__ uint4 magnitudes() const {
    return make_uint4(m[0] & 0x7FFF7FFFu, m[1] & 0x7FFF7FFFu, m[2] & 0x7FFF7FFFu, m[3] & 0x7FFF7FFFu);
  }
  /// Bits of magnitudes compare as they do, and a NaN is above them.
  __device__ __forceinline__ float top() const {
    unsigned high = 0, low = 0;
#pragma unroll
    for (int j = 0; j < 4; ++j) high = max(high, m[j] & 0x7FFF0000u), low = max(low, m[j] & 0x7FFFu);
    return __uint_as_float(max(high, low << 16));
  }
};

/// Maxima of the magnitudes of 4 or 8 rows, two BF16 a word.
template <int rows>
struct RowTops {
  unsigned m[rows / 2];

  __device__ __forceinline__ explicit RowTops(const Eight<Bf16> (&v)[rows]) {
#pragma unroll
    for (int i = 0; i < rows; i += 2) m[i / 2] = Tops<Bf16>::of_two_rows(v[i], v[i + 1]);
  }
  __device__ __forceinline__ void raise_from_lane(int distance) {
#pragma unroll
    for (int i = 0; i < rows / 2; ++i) m[i] = larger_magnitudes(__shfl_xor_sync(~0u, m[i], distance), m[i]);
  }
  __device__ __forceinline__ void put(unsigned short* to) const {
#pragma unroll
    for (int i = 0; i < rows / 2; ++i) reinterpret_cast<unsigned*>(to)[i] = m[i] & 0x7FFF7FFFu;
  }
};

template <>
struct Tops<float> {
  float m[8]{};

  __device__ __forceinline__ void raise(const Eight<float>& e) {
#pragma unroll
    for (int j = 0; j < 8; ++j) m[j] = fmaxf(fabsf(e.v[j]), m[j]);
  }
  static __device__ __forceinline__ Tops of_rows(const Eight<float> (&rows)[8]) {
    Tops t;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
#pragma unroll
      for (int j = 0; j < 8; ++j) t.m[i] = fmaxf(fabsf(rows[i].v[j]), t.m[i]);
    }
    return t;
  }
  __device__ __forceinline__ void raise_from_lane(int distance) {
#pragma unroll
    for (int j = 0; j < 8; ++j) m[j] = fmaxf(__shfl_xor_sync(~0u, m[j], distance), m[j]);
  }
  __device__ __forceinline__ float operator[](int j) const { return m[j]; }
  __device__ __forceinline__ float top() const {
    float most = m[0];
#pragma unroll
    for (int j = 1; j < 8; ++j) most = fmaxf(m[j], most);
    return most;
  }
};

}  // namespace octet::cuda
