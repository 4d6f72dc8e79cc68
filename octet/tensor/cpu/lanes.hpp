#pragma once

// Only for *.cpu.cpp files: the row interface of one CPU thread. Compiled once per instruction set, in a separate namespace.

#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "octet/numerics/rounding.hpp"

#ifndef OCTET_ISA
#error "lanes.hpp is for kernels (*.cpu.cpp), which are compiled once per instruction set"
#endif

namespace octet::cpu::OCTET_ISA {

#ifdef OCTET_ISA_v4
inline constexpr int width = 16;
#else
inline constexpr int width = 8;
#endif

typedef float Vec __attribute__((vector_size(4 * width)));
using IntVec = IntOf<Vec>;
typedef std::uint8_t ByteVec __attribute__((vector_size(width)));
typedef std::uint16_t HalfVec __attribute__((vector_size(2 * width)));

/// The position of a pack in a row: all of it inside (Full), or only the first `count` values (Part).
struct Full {
  std::int64_t at;
};
struct Part {
  std::int64_t at;
  int count;
};

OCTET_HD int count_of(Full) { return width; }
OCTET_HD int count_of(Part c) { return c.count; }

/// The value under a cursor's address, raw: n values of T, zero beyond a Part's count.
template <class P, class T>
OCTET_HD P load_raw(const T* p, Full c) {
  P v;
  __builtin_memcpy(&v, p + c.at, sizeof(P));
  return v;
}
template <class P, class T>
OCTET_HD P load_raw(const T* p, Part c) {
  P v{};
  __builtin_memcpy(&v, p + c.at, std::size_t(c.count) * sizeof(T));
  return v;
}
template <class P, class T>
OCTET_HD void store_raw(T* p, Full c, P v) {
  __builtin_memcpy(p + c.at, &v, sizeof(P));
}
template <class P, class T>
OCTET_HD void store_raw(T* p, Part c, P v) {
  __builtin_memcpy(p + c.at, &v, std::size_t(c.count) * sizeof(T));
}

/// a * b + c with one rounding.
OCTET_HD Vec fused_multiply_add(Vec a, Vec b, Vec c) {
#ifdef OCTET_ISA_v4
  return (Vec)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#else
  return (Vec)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#endif
}
OCTET_HD Vec square_root(Vec x) {
#ifdef OCTET_ISA_v4
  return (Vec)_mm512_sqrt_ps((__m512)x);
#else
  return (Vec)_mm256_sqrt_ps((__m256)x);
#endif
}
// Narrowing and widening by name: GCC 12 makes three to five instructions of __builtin_convertvector where the processor has one.

/// Narrow the low bits of each lane.
OCTET_HD ByteVec to_bytes(IntVec v) {
#ifdef OCTET_ISA_v4
  return (ByteVec)_mm512_cvtepi32_epi8((__m512i)v);
#else
  const __m256i low = _mm256_set1_epi32(0x0C080400), quarters = _mm256_shuffle_epi8((__m256i)v, low);
  return __builtin_bit_cast(ByteVec,
                            _mm_cvtsi128_si64(_mm_unpacklo_epi32(_mm256_castsi256_si128(quarters), _mm256_extracti128_si256(quarters, 1))));
#endif
}
OCTET_HD HalfVec to_halves(IntVec v) {
#ifdef OCTET_ISA_v4
  return (HalfVec)_mm512_cvtepi32_epi16((__m512i)v);
#else
  const __m256i low = _mm256_set1_epi64x(0x0D0C090805040100), halves = _mm256_shuffle_epi8((__m256i)v, low);
  return (HalfVec)_mm256_castsi256_si128(_mm256_permute4x64_epi64(halves, 0b1000));
#endif
}
OCTET_HD IntVec widen(ByteVec v) {
#ifdef OCTET_ISA_v4
  return (IntVec)_mm512_cvtepu8_epi32((__m128i)v);
#else
  return (IntVec)_mm256_cvtepu8_epi32(_mm_cvtsi64_si128(__builtin_bit_cast(long long, v)));
#endif
}
OCTET_HD IntVec widen(HalfVec v) {
#ifdef OCTET_ISA_v4
  return (IntVec)_mm512_cvtepu16_epi32((__m256i)v);
#else
  return (IntVec)_mm256_cvtepu16_epi32((__m128i)v);
#endif
}

// The bits are those of to_float(Fp16) and to_fp16() in every lane, NaN included.

OCTET_HD Vec decode_fp16_lanes(HalfVec v) {
#ifdef OCTET_ISA_v4
  return (Vec)_mm512_cvtph_ps((__m256i)v);
#else
  return (Vec)_mm256_cvtph_ps((__m128i)v);
#endif
}
OCTET_HD HalfVec encode_fp16_lanes(Vec v) {
#ifdef OCTET_ISA_v4
  return (HalfVec)_mm512_cvtps_ph((__m512)v, _MM_FROUND_TO_NEAREST_INT);
#else
  return (HalfVec)_mm256_cvtps_ph((__m256)v, _MM_FROUND_TO_NEAREST_INT);
#endif
}

/// Whether a comparison holds in every lane.
OCTET_HD bool all_of(IntVec holds) {
#ifdef OCTET_ISA_v4
  return _mm512_movepi32_mask((__m512i)holds) == 0xFFFF;
#else
  return _mm256_movemask_ps((__m256)holds) == 0xFF;
#endif
}

/// f(f(..)) over all lanes: the upper half with the lower, until one is left.
template <class F>
OCTET_HD float fold(Vec v, const F& f) {
#ifdef OCTET_ISA_v4
  const __m256 half = f(_mm512_extractf32x8_ps((__m512)v, 1), _mm512_castps512_ps256((__m512)v));
#else
  const __m256 half = (__m256)v;
#endif
  const __m128 four = f(_mm256_extractf128_ps(half, 1), _mm256_castps256_ps128(half));
  const __m128 two = f(_mm_movehl_ps(four, four), four);
  return f(_mm_shuffle_ps(two, two, 1), two)[0];
}

/// The CPU's lanes: one thread owns a whole row and walks it in packs of one SIMD register. A row body is written against this
/// interface (on a GPU a warp or a block provides it) and is independent of the number of lanes.
struct Lane {
  using Value = Vec;

  /// Calls f(cursor) for every pack of a row of n values, from value i on.
  template <class F>
  OCTET_HD void each(std::int64_t n, F&& f, std::int64_t i = 0) const {
    for (; i + width <= n; i += width) f(Full{i});
    if (i < n) f(Part{i, int(n - i)});
  }
  OCTET_HD bool first() const { return true; }

  template <class Cursor>
  OCTET_HD Vec load(const float* p, Cursor c) const {
    return load_raw<Vec>(p, c);
  }
  template <class Cursor>
  OCTET_HD Vec load(const Bf16* p, Cursor c) const {
    return decode_bf16_lanes<Vec>(widen(load_raw<HalfVec>(p, c)));
  }
  template <class Cursor>
  OCTET_HD Vec load(const Fp16* p, Cursor c) const {
    return decode_fp16_lanes(load_raw<HalfVec>(p, c));
  }
  /// Values of 8-bit codes.
  template <class Cursor>
  OCTET_HD Vec load(const E4M3* p, Cursor c) const {
    return decode_lanes<E4M3, Vec>(widen(load_raw<ByteVec>(reinterpret_cast<const std::uint8_t*>(p), c)));
  }
  template <class Cursor>
  OCTET_HD void store(float* p, Cursor c, Vec v) const {
    store_raw(p, c, v);
  }
  template <class Cursor>
  OCTET_HD void store(Bf16* p, Cursor c, Vec v) const {
    store_raw(p, c, to_halves(encode_bf16_lanes(v)));
  }
  template <class Cursor>
  OCTET_HD void store(Fp16* p, Cursor c, Vec v) const {
    store_raw(p, c, encode_fp16_lanes(v));
  }

  /// v, with `otherwise` beyond the end of the row: if a loaded 0 would change the result, such as sums of exp(x) or a maximum.
  OCTET_HD Vec within(Vec v, Full, float = 0) const { return v; }
  OCTET_HD Vec within(Vec v, Part c, float otherwise = 0) const {
    IntVec index;
    for (int i = 0; i < width; ++i) index[i] = i;
    return index < c.count ? v : splat<Vec>(otherwise);
  }

  /// p[c + i] = v[i] rounded stochastically by the random bits halves[c + i].
  template <class Cursor>
  OCTET_HD void store_drawn(Bf16* p, Cursor c, Vec v, const std::uint16_t* halves) const {
    const IntVec random = widen(load_raw<HalfVec>(halves, c));
    if (all_of(magnitude(v) <= bf16_max)) [[likely]]
      return store_raw(p, c, to_halves((int_of(v) + random) >> 16));  // raised_to_bf16() of every lane
    for (int i = 0; i < count_of(c); ++i) p[c.at + i] = to_bf16_stochastic(v[i], std::uint32_t(random[i]) << 16);
  }

  OCTET_HD Vec sqrt(Vec v) const { return square_root(v); }
  OCTET_HD float sqrt(float v) const { return __builtin_sqrtf(v); }

  /// Over the values of all lanes and packs handed in; the order of additions is fixed.
  OCTET_HD float sum(Vec v) const {
    return fold(v, [](auto upper, auto lower) { return lower + upper; });
  }
  OCTET_HD float max(Vec v) const {
    return fold(v, [](auto upper, auto lower) { return upper > lower ? upper : lower; });
  }
};

}  // namespace octet::cpu::OCTET_ISA
