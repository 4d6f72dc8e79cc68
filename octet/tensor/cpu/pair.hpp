#pragma once

// Only for *.cpu.cpp files: two registers of values at a time, in the order in which memory gives and takes them at the least cost.

#include "octet/tensor/cpu/lanes.hpp"

namespace octet::cpu::OCTET_ISA {

/// The values of `pair_width` consecutive places.
struct Pair {
  Vec a, b;
};
inline constexpr int pair_width = 2 * width;

/// Which places: of `halves` a has the first half and b the second; of `interleaved` a has the even places and b the odd ones. A register
/// of BF16 or of codes splits and joins so by shifts and masks, without moving anything from lane to lane.
enum class PairOrder { halves, interleaved };

template <PairOrder order>
OCTET_HD Pair load_pair(const float* p) {
  const Vec low = load_raw<Vec>(p, Full{0}), high = load_raw<Vec>(p, Full{width});
  if constexpr (order == PairOrder::halves) return {low, high};
#ifdef OCTET_ISA_v4
  const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30),
                odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
  return {(Vec)_mm512_permutex2var_ps((__m512)low, even, (__m512)high), (Vec)_mm512_permutex2var_ps((__m512)low, odd, (__m512)high)};
#else
  const auto in_order = [](__m256 v) { return (Vec)_mm256_permute4x64_epi64((__m256i)v, 0b11'01'10'00); };
  return {in_order(_mm256_shuffle_ps((__m256)low, (__m256)high, 0b10'00'10'00)),
          in_order(_mm256_shuffle_ps((__m256)low, (__m256)high, 0b11'01'11'01))};
#endif
}
template <PairOrder order>
OCTET_HD Pair load_pair(const Bf16* p) {
  if constexpr (order == PairOrder::halves) return {Lane{}.load(p, Full{0}), Lane{}.load(p, Full{width})};
  const IntVec both = load_raw<IntVec>(p, Full{0});
  return {value_of<Vec>(IntVec(both << 16)), value_of<Vec>(IntVec(both & std::int32_t(0xFFFF0000)))};
}

template <PairOrder order>
OCTET_HD void store_pair(float* p, Pair v) {
  if constexpr (order == PairOrder::interleaved) {
#ifdef OCTET_ISA_v4
    const __m512i low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23),
                  high = _mm512_add_epi32(low, _mm512_set1_epi32(8));
    v = {(Vec)_mm512_permutex2var_ps((__m512)v.a, low, (__m512)v.b), (Vec)_mm512_permutex2var_ps((__m512)v.a, high, (__m512)v.b)};
#else
    const __m256 low = _mm256_unpacklo_ps((__m256)v.a, (__m256)v.b), high = _mm256_unpackhi_ps((__m256)v.a, (__m256)v.b);
    v = {(Vec)_mm256_permute2f128_ps(low, high, 0x20), (Vec)_mm256_permute2f128_ps(low, high, 0x31)};
#endif
  }
  store_raw(p, Full{0}, v.a), store_raw(p, Full{width}, v.b);
}
/// The upper halves of the lanes: of values that are BF16 numbers, those.
template <PairOrder order>
OCTET_HD void store_pair(Bf16* p, Pair v) {
  const IntVec a = int_of(v.a), b = int_of(v.b);
  if constexpr (order == PairOrder::interleaved) {
    store_raw(p, Full{0}, IntVec((IntVec)(bits_of(v.a) >> 16) | (b & std::int32_t(0xFFFF0000))));
  } else {
#ifdef OCTET_ISA_v4
    alignas(64) static constexpr std::uint16_t upper[32] = {1,  3,  5,  7,  9,  11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31,
                                                            33, 35, 37, 39, 41, 43, 45, 47, 49, 51, 53, 55, 57, 59, 61, 63};
    store_raw(p, Full{0}, (IntVec)_mm512_permutex2var_epi16((__m512i)a, _mm512_load_si512(upper), (__m512i)b));
#else
    const __m256i packed = _mm256_packus_epi32(_mm256_srli_epi32((__m256i)a, 16), _mm256_srli_epi32((__m256i)b, 16));
    store_raw(p, Full{0}, (IntVec)_mm256_permute4x64_epi64(packed, 0b11'01'10'00));
#endif
  }
}

/// Codes in the low 8 bits of lanes, which are 0 above them.
template <PairOrder order>
OCTET_HD void store_codes(std::uint8_t* p, IntVec a, IntVec b) {
  if constexpr (order == PairOrder::interleaved) store_raw(p, Full{0}, to_halves(a | (b << 8)));
  else store_raw(p, Full{0}, to_bytes(a)), store_raw(p, Full{width}, to_bytes(b));
}
/// Codes in the low 8 bits of lanes, with anything above them. Interleaved.
struct CodePair {
  IntVec a, b;
};
OCTET_HD CodePair load_codes(const std::uint8_t* p) {
  const IntVec both = widen(load_raw<HalfVec>(p, Full{0}));
  return {both, both >> 8};
}

// Arithmetic on pairs, so that a row body that uses nothing else can be given a PairLane.
OCTET_HD Pair operator+(Pair x, Pair y) { return {x.a + y.a, x.b + y.b}; }
OCTET_HD Pair operator-(Pair x, Pair y) { return {x.a - y.a, x.b - y.b}; }
OCTET_HD Pair operator*(Pair x, Pair y) { return {x.a * y.a, x.b * y.b}; }
OCTET_HD Pair operator/(Pair x, Pair y) { return {x.a / y.a, x.b / y.b}; }
OCTET_HD Pair operator+(Pair x, float y) { return {x.a + y, x.b + y}; }
OCTET_HD Pair operator*(Pair x, float y) { return {x.a * y, x.b * y}; }

/// A Lane that takes two registers at a time, interleaved. Only for whole pairs.
struct PairLane {
  using Value = Pair;

  template <class T>
  OCTET_HD Pair load(const T* p, Full c) const {
    return load_pair<PairOrder::interleaved>(p + c.at);
  }
  OCTET_HD void store(float* p, Full c, Pair v) const { store_pair<PairOrder::interleaved>(p + c.at, v); }
  OCTET_HD Pair sqrt(Pair v) const { return {square_root(v.a), square_root(v.b)}; }

  /// p[c + i] = v[i] rounded stochastically by the random bits halves[c + i].
  OCTET_HD void store_drawn(Bf16* p, Full c, Pair v, const std::uint16_t* halves) const {
    const IntVec random = load_raw<IntVec>(halves, c), size_a = int_of(magnitude(v.a)), size_b = int_of(magnitude(v.b));
    if (all_of((size_a > size_b ? size_a : size_b) <= int_of(splat<Vec>(bf16_max)))) [[likely]] {  // raised_to_bf16() of every lane
      const Vec a = value_of<Vec>(IntVec(int_of(v.a) + (random & 0xFFFF)));
      const Vec b = value_of<Vec>(IntVec(int_of(v.b) + (IntVec)((BitsOf<Vec>)random >> 16)));
      return store_pair<PairOrder::interleaved>(p + c.at, {a, b});
    }
    float values[pair_width];
    store_pair<PairOrder::interleaved>(values, v);
#pragma GCC unroll 1
    for (int i = 0; i < pair_width; ++i) p[c.at + i] = to_bf16_stochastic(values[i], std::uint32_t(halves[c.at + i]) << 16);
  }
};

}  // namespace octet::cpu::OCTET_ISA
