#pragma once

// Only for *.cpu.cpp files: codes of registers, with the bits of numerics/formats.hpp and numerics/drawn.hpp in fewer instructions where
// all values are ordinary. The AVX2 kernels round stochastically by those formulas themselves, and tests of stored/, accumulate/ and adamw/
// compare the two instruction sets on all codes and on values of every size.

#include "octet/numerics/drawn.hpp"
#include "octet/numerics/in_range.hpp"
#include "octet/tensor/cpu/lanes.hpp"

namespace octet::cpu::OCTET_ISA {

/// Whether no lane is above `most`.
OCTET_HD bool none_above(IntVec v, std::int32_t most) {
#ifdef OCTET_ISA_v4
  const __mmask16 above = _mm512_cmpgt_epi32_mask((__m512i)v, _mm512_set1_epi32(most));
  return _mm512_kortestz(above, above) != 0;
#else
  return all_of(v <= most);
#endif
}

/// Values to be encoded: magnitudes, and registers whose upper bits are the signs.
struct SignedSizes {
  Vec size;
  IntVec sign;

  OCTET_HD explicit SignedSizes(Vec x) : size(magnitude(x)), sign(int_of(x)) {}
  OCTET_HD Vec values() const { return value_of<Vec>(IntVec(int_of(size) | (sign & std::int32_t(0x80000000)))); }
  /// Whether no value is above `most`, infinite or NaN.
  OCTET_HD bool within(float most) const { return none_above(int_of(size), int_of(most)); }
  /// kept_above() of the values.
  OCTET_HD void keep_above(float least) {
#ifdef OCTET_ISA_v4
    const __m512i bits = (__m512i)size;
    size = (Vec)_mm512_mask_max_epi32(bits, _mm512_test_epi32_mask(bits, bits), bits, (__m512i)splat<Vec>(least));
#else
    size = size == 0.0f ? size : int_of(size) < int_of(splat<Vec>(least)) ? splat<Vec>(least) : size;
#endif
  }
};

/// decode_lanes<E4M3>() times a factor, rounded once.
OCTET_HD Vec decode_e4m3(ByteVec codes, float factor) {
#ifdef OCTET_ISA_v4
  // A code is the FP16 number with the same exponent and mantissa bits times 2^8, subnormal or not.
  const __m128i bytes = (__m128i)codes;
  const __mmask16 nan = _mm_cmpeq_epi8_mask(_mm_or_si128(bytes, _mm_set1_epi8(char(0x80))), _mm_set1_epi8(-1));
  __m256i halves = _mm256_and_si256(_mm256_slli_epi16(_mm256_cvtepi8_epi16(bytes), 7), _mm256_set1_epi16(std::int16_t(0xBFFF)));
  halves = _mm256_mask_add_epi16(halves, nan, halves, _mm256_set1_epi16(0x7E00 - 0x3F80));
  return (Vec)_mm512_cvtph_ps(halves) * 0x1p8f * factor;  // 2^8 times the largest factors would be infinite
#else
  return decode_lanes<E4M3, Vec>(widen(codes)) * factor;
#endif
}

#ifdef OCTET_ISA_v4
namespace detail {
/// Bits whose upper part is the code's exponent and mantissa, after a draw was added to the bits that the format drops. Where a number is
/// subnormal in the format, the least normal one is added first, which has the same step: `tiny`. This sum truncates below the bits of a
/// draw. The bits that the format drops are left in `bits`.
template <int mantissa_bits, int bias>
struct Raised {
  static constexpr std::int32_t min_normal = std::int32_t(127 - bias + 1) << 23;
  __mmask16 tiny;
  IntVec bits;

  OCTET_HD Raised(Vec size, IntVec raise) {
    const __m512 x = (__m512)size, least = _mm512_castsi512_ps(_mm512_set1_epi32(min_normal));
    tiny = _mm512_cmplt_epi32_mask((__m512i)size, _mm512_set1_epi32(min_normal));
    bits = (IntVec)_mm512_mask_add_round_ps(x, tiny, x, least, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC) + raise;
  }
};
/// The bits of `bits` under `mask`, and those of `others` elsewhere.
template <std::int32_t mask>
OCTET_HD IntVec joined(IntVec bits, IntVec others) {
  return (IntVec)_mm512_ternarylogic_epi32((__m512i)bits, (__m512i)others, _mm512_set1_epi32(mask), 0b11100100);
}
}  // namespace detail
#endif

/// The codes of infinite_as_nan() of values, rounded to nearest.
OCTET_HD ByteVec encode_e4m3(SignedSizes x) {
  if (x.within(E4M3::nearest_to_max)) [[likely]]
    return to_bytes(InRange<E4M3, Vec>(x.values()).code());
  const Vec v = x.values();
  return to_bytes(encode_lanes<E4M3>(x.size <= 0x1.fffffep127f ? v : splat<Vec>(__builtin_nanf(""))));
}
/// encode_drawn_lanes<E4M3>() of infinite_as_nan() of values.
OCTET_HD ByteVec encode_e4m3_drawn(SignedSizes x, IntVec random) {
#ifdef OCTET_ISA_v4
  if (x.within(E4M3::max)) [[likely]] {
    const detail::Raised<3, 7> raised(x.size, random << 4);
    const __m512i code = _mm512_srli_epi32((__m512i)raised.bits, 20), normal = _mm512_sub_epi32(code, _mm512_set1_epi32(120 << 3));
    const IntVec both = (IntVec)_mm512_mask_sub_epi32(normal, raised.tiny, normal, _mm512_set1_epi32(1 << 3));
    return to_bytes(detail::joined<0x7F>(both, x.sign >> 24));
  }
#endif
  const Vec v = x.values();
  return to_bytes(encode_drawn_lanes<E4M3>(Vec(x.size <= 0x1.fffffep127f ? v : splat<Vec>(__builtin_nanf(""))), random));
}
/// encode_fp16_drawn_lanes().
OCTET_HD HalfVec encode_fp16_drawn(SignedSizes x, IntVec random) {
#ifdef OCTET_ISA_v4
  if (x.within(Fp16::max)) [[likely]] {
    const detail::Raised<10, 15> raised(x.size, random >> 3);
    // Without the dropped bits, which a draw's carry to the next power of two makes worth twice as much.
    const __m512 sum = (__m512)(raised.bits & ~0x1FFF), least = _mm512_castsi512_ps(_mm512_set1_epi32(raised.min_normal));
    const IntVec size = (IntVec)_mm512_mask_sub_ps(sum, raised.tiny, sum, least);
    return (HalfVec)_mm512_cvtps_ph((__m512)detail::joined<0x7FFFFFFF>(size, x.sign), _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
  }
#endif
  return to_halves(encode_fp16_drawn_lanes(x.values(), random));
}

}  // namespace octet::cpu::OCTET_ISA
