#pragma once

#include "octet/numerics/formats.hpp"

namespace octet {

/// Stochastic rounding: x goes up with a probability equal to its distance from the code below, so the mean over `random` (uniform
/// 32-bit words, see philox.hpp) is x: exactly in the normal range, to 2^-24 of a step among subnormals. Codes themselves, saturation
/// and NaN are as in encode(). Source: Croci et al. 2022, eq. 2.4.
template <class Format>
OCTET_HD constexpr std::uint8_t encode_stochastic(float x, std::uint32_t random) {
  constexpr int drop = 23 - Format::mantissa_bits;
  constexpr std::uint32_t min_normal = std::uint32_t(127 - Format::bias + 1) << 23;
  const std::uint32_t size = bits_of(x) & 0x7FFFFFFFu;
  const std::uint8_t sign = std::uint8_t((bits_of(x) >> 24) & 0x80u);
  if (size > 0x7F800000u) return Format::nan_code;
  if (size >= bits_of(Format::max)) return sign | Format::max_code;
  if (size < min_normal) {  // the spacing is min_subnormal: split into whole steps and a 24-bit fraction
    const float steps = float_of(size) / Format::min_subnormal;
    const std::uint32_t whole = std::uint32_t(steps);
    const float fraction = steps - float(whole);
    return sign | std::uint8_t(whole + (float(random >> 8) * 0x1p-24f < fraction ? 1u : 0u));
  }
  const std::uint32_t rounded = size + (random >> (32 - drop));
  const std::uint32_t code = (rounded >> drop) - (std::uint32_t(127 - Format::bias) << Format::mantissa_bits);
  return sign | std::uint8_t(code < Format::max_code ? code : Format::max_code);
}

inline constexpr float bf16_max = 0x1.fep127f;

/// Bits whose upper half is x rounded to BF16 stochastically, where |x| <= bf16_max.
OCTET_HD constexpr std::uint32_t raised_to_bf16(float x, std::uint32_t random) { return bits_of(x) + (random >> 16); }

/// The same for BF16; beyond the largest BF16 it saturates there, infinity and NaN stay.
OCTET_HD constexpr Bf16 to_bf16_stochastic(float x, std::uint32_t random) {
  const std::uint32_t size = bits_of(x) & 0x7FFFFFFFu, sign = (bits_of(x) >> 16) & 0x8000u;
  if (size >= 0x7F800000u) return to_bf16(x);
  if (size > bits_of(bf16_max)) return {std::uint16_t(sign | bits_of(bf16_max) >> 16)};
  return {std::uint16_t(raised_to_bf16(x, random) >> 16)};
}

}  // namespace octet
