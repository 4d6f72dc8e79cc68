#pragma once

#include "octet/numerics/formats.hpp"

// `scale` multiplies before encoding, `descale` multiplies after decoding, `amax` is max |x|. This header turns an amax into a scale.

namespace octet {

/// How an amax becomes a scale.
enum class ScaleRule : std::uint8_t {
  quotient,      // the FP32 quotient max / amax
  power_of_two,  // that quotient rounded down to a power of two: descaling is then exact
  e8m0,          // 2^-e with e = ceil(log2(amax / max)), stored as E8M0
};

/// The scale that maps `amax` to `format_max`. amax 0, infinity and NaN give 1; a quotient that overflows gives `overflow`
/// (the largest finite value of the input's type). Source: Transformer Engine, recipe_common.cuh; golden values in scale.test.cpp.
OCTET_HD constexpr float scale_from_amax(float amax, float format_max, bool power_of_two, float overflow = 0x1.fffffep127f) {
  if (!(amax > 0.0f) || bits_of(amax) >= 0x7F800000u) return 1.0f;
  float scale = format_max / amax;
  if (bits_of(scale) == 0x7F800000u) scale = overflow;
  return power_of_two ? float_of(bits_of(scale) & 0xFF800000u) : scale;
}

/// The scale after one step of a per-tensor history: `scaled_max / amax`, the previous scale where amax is 0, infinite or NaN.
/// Source: Transformer Engine, delayed_scaling.cu.
OCTET_HD constexpr float scale_from_history(float amax, float scaled_max, float previous) {
  if (!(amax > 0.0f) || bits_of(amax) >= 0x7F800000u) return previous;
  const float scale = scaled_max / amax;
  return bits_of(scale) == 0x7F800000u ? 0x1.fffffep127f : scale;
}

/// E8M0 code of a block's descale: amax * RN(1 / format_max), rounded up. Source: Transformer Engine, quantize_mxfp8.cuh.
OCTET_HD constexpr std::uint8_t e8m0_from_amax(float amax, float format_max) { return encode_e8m0(amax * (1.0f / format_max)); }

}  // namespace octet
