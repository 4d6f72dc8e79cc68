#pragma once

// Only for quantize.cpu.cpp and slice.cpu.cpp: sources, which are types of stored values, and maxima of their magnitudes.
//
// A magnitude is compared by its bits, as an integer: that orders all finite values and puts infinity and NaN above them, so one
// maximum gives the largest value and whether all are finite.

#include "octet/tensor/cpu/pair.hpp"

namespace octet::cpu::OCTET_ISA {

/// bits & mask, raised to `most`: of one register of 16- or 32-bit magnitudes.
template <class Bits>
OCTET_HD Bits raise(Bits bits, Bits most) {
  constexpr std::uint32_t mask = sizeof(bits[0]) == 2 ? 0x7FFF : 0x7FFFFFFF;
#ifdef OCTET_ISA_v4
  const __m512i a = sizeof(bits[0]) == 2 ? _mm512_set1_epi16(short(mask)) : _mm512_set1_epi32(int(mask)),
                size = _mm512_and_si512((__m512i)bits, a);
  return (Bits)(sizeof(bits[0]) == 2 ? _mm512_max_epu16(size, (__m512i)most) : _mm512_max_epu32(size, (__m512i)most));
#else
  const __m256i a = sizeof(bits[0]) == 2 ? _mm256_set1_epi16(short(mask)) : _mm256_set1_epi32(int(mask)),
                size = _mm256_and_si256((__m256i)bits, a);
  return (Bits)(sizeof(bits[0]) == 2 ? _mm256_max_epu16(size, (__m256i)most) : _mm256_max_epu32(size, (__m256i)most));
#endif
}

typedef std::uint32_t Words __attribute__((vector_size(4 * width)));
typedef std::uint16_t Halves __attribute__((vector_size(4 * width)));

/// The largest of a register.
OCTET_HD std::uint32_t largest(Words v) {
#ifdef OCTET_ISA_v4
  const __m256i half = _mm256_max_epu32(_mm512_extracti32x8_epi32((__m512i)v, 1), _mm512_castsi512_si256((__m512i)v));
#else
  const __m256i half = (__m256i)v;
#endif
  const __m128i four = _mm_max_epu32(_mm256_extracti128_si256(half, 1), _mm256_castsi256_si128(half));
  const __m128i two = _mm_max_epu32(_mm_shuffle_epi32(four, 0b1110), four);
  return std::uint32_t(_mm_cvtsi128_si32(_mm_max_epu32(_mm_shuffle_epi32(two, 1), two)));
}
OCTET_HD std::uint32_t largest(Halves v) {
#ifdef OCTET_ISA_v4
  const __m256i half = _mm256_max_epu16(_mm512_extracti32x8_epi32((__m512i)v, 1), _mm512_castsi512_si256((__m512i)v));
#else
  const __m256i half = (__m256i)v;
#endif
  const __m128i eight = _mm_max_epu16(_mm256_extracti128_si256(half, 1), _mm256_castsi256_si128(half));
  // The processor has an instruction for the minimum of eight, so values are complemented.
  return 0xFFFFu ^ (std::uint32_t(_mm_cvtsi128_si32(_mm_minpos_epu16(_mm_xor_si128(eight, _mm_set1_epi16(-1))))) & 0xFFFFu);
}

/// f32 in memory.
struct Floats {
  using Type = float;
  using Raw = Words;
  template <class Cursor>
  OCTET_HD static Vec load(const float* p, Cursor c) {
    return Lane{}.load(p, c);
  }
  template <class Cursor>
  OCTET_HD static Raw raw(const float* p, Cursor c) {
    return load_raw<Raw>(p, c);
  }
  template <PairOrder order>
  OCTET_HD static Pair pair(const float* p) {
    return load_pair<order>(p);
  }
  OCTET_HD static float magnitude_of(std::uint32_t bits) { return float_of(bits); }
  OCTET_HD static void magnitudes_of(Raw bits, float* to) { store_raw(to, Full{0}, bits); }
};
/// f32 in memory, to be quantized as if it were BF16.
struct RoundedFloats : Floats {
  template <class Cursor>
  OCTET_HD static Vec load(const float* p, Cursor c) {
    return round_to_bf16(Lane{}.load(p, c));
  }
  template <class Cursor>
  OCTET_HD static Raw raw(const float* p, Cursor c) {
    return (Raw)load(p, c);
  }
  template <PairOrder order>
  OCTET_HD static Pair pair(const float* p) {
    const Pair v = load_pair<order>(p);
    return {round_to_bf16(v.a), round_to_bf16(v.b)};
  }
};
/// BF16 in memory.
struct Bf16s {
  using Type = Bf16;
  using Raw = Halves;
  template <class Cursor>
  OCTET_HD static Vec load(const Bf16* p, Cursor c) {
    return Lane{}.load(p, c);
  }
  template <class Cursor>
  OCTET_HD static Raw raw(const Bf16* p, Cursor c) {
    return load_raw<Raw>(p, c);
  }
  template <PairOrder order>
  OCTET_HD static Pair pair(const Bf16* p) {
    return load_pair<order>(p);
  }
  OCTET_HD static float magnitude_of(std::uint32_t bits) { return float_of(bits << 16); }
  OCTET_HD static void magnitudes_of(Raw bits, float* to) {
    HalfVec parts[2];
    __builtin_memcpy(parts, &bits, sizeof bits);
    for (int i = 0; i < 2; ++i) store_raw(to, Full{i * width}, widen(parts[i]) << 16);
  }
};

/// FP16 in memory, times a power of two.
struct ScaledHalves {
  using Type = Fp16;
  using Raw = Halves;
  float factor;

  template <class Cursor>
  OCTET_HD Vec load(const Fp16* p, Cursor c) const {
    return Lane{}.load(p, c) * factor;
  }
  template <class Cursor>
  OCTET_HD Raw raw(const Fp16* p, Cursor c) const {
    return load_raw<Raw>(p, c);
  }
  template <PairOrder order>
  OCTET_HD Pair pair(const Fp16* p) const {
    static_assert(order == PairOrder::halves);
    return {load(p, Full{0}), load(p, Full{width})};
  }
  OCTET_HD float magnitude_of(std::uint32_t bits) const { return to_float(Fp16{std::uint16_t(bits)}) * factor; }
  OCTET_HD void magnitudes_of(Raw bits, float* to) const {
    Fp16 values[4 * width / int(sizeof(Fp16))];
    __builtin_memcpy(values, &bits, sizeof bits);
    for (int i = 0; i < 2; ++i) store_raw(to, Full{i * width}, load(values, Full{i * width}));
  }
};

template <class Source>
inline constexpr int raw_lanes = int(sizeof(typename Source::Raw) / sizeof(typename Source::Type));

/// f(cursor) for every register of raw values in n.
template <class Source, class F>
OCTET_HD void each_raw(std::int64_t n, F&& f) {
  constexpr int lanes = raw_lanes<Source>;
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) f(Full{i});
  if (i < n) f(Part{i, int(n - i)});
}

/// max |x| of n values; above every finite value when one is infinite or NaN.
template <class Source>
OCTET_HD float maximum(const Source& source, const typename Source::Type* x, std::int64_t n) {
  typename Source::Raw most{};
  each_raw<Source>(n, [&](auto c) { most = raise(source.raw(x, c), most); });
  return source.magnitude_of(largest(most));
}
/// max |x| of n values; NaN counts as 0.
template <class Source>
OCTET_HD float maximum_of_numbers(const Source& source, const typename Source::Type* x, std::int64_t n) {
  Vec most{};
  Lane{}.each(n, [&](auto c) { most = larger(magnitude(source.load(x, c)), most); });
  return Lane{}.max(most);
}

}  // namespace octet::cpu::OCTET_ISA
