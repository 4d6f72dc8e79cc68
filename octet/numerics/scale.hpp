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

/// How the maxima of a tensor's blocks become scales.
struct BlockRule {
  ScaleRule rule = ScaleRule::quotient;
  float format_max = 0;
  float overflow = 0;  // the scale where the quotient overflows: per tensor the largest float, per block the largest value of x's type
};

/// The result of a block's maximum: the factor before encoding, the factor after decoding and, for the e8m0 rule, the latter's code.
template <class V>
struct BlockScale {
  V scale, descale;
  IntOf<V> code;
};

/// The scale that a maximum gives under a rule, on every lane; amax >= 0. amax 0, infinity and NaN give 1 by the rules of quotients, and a
/// quotient that overflows gives BlockRule::overflow. By the e8m0 rule amax is never NaN: the code is that of amax * RN(1 / format_max),
/// rounded up. Source: Transformer Engine, recipe_common.cuh and quantize_mxfp8.cuh; golden values in scale.test.cpp.
template <class V>
OCTET_HD BlockScale<V> block_scale(V amax, const BlockRule& r) {
  using Int = IntOf<V>;
  const Int bits = int_of(amax);
  if (r.rule == ScaleRule::e8m0) {
    const Int x = int_of(V(amax * (1.0f / r.format_max)));
    const Int exponent = x >> 23, mantissa = x & 0x7FFFFF;
    // Rounded up, except where that would leave E8M0 or where 2^-127 is near enough.
    Int code = exponent + (mantissa > (exponent == 0 ? Int{} + 0x400000 : Int{}) ? Int{} + 1 : Int{});
    code = exponent >= 0xFE ? Int{} + std::int32_t(E8M0::max_code) : code;
    const Int inverse = (254 - code) << 23, value = code << 23;
    return {value_of<V>(code == 0xFE ? Int{} + 0x00400000 : inverse), value_of<V>(code == 0 ? Int{} + 0x00400000 : value), code};
  }
  V scale = r.format_max / amax;
  scale = int_of(scale) == 0x7F800000 ? splat<V>(r.overflow) : scale;
  if (r.rule == ScaleRule::power_of_two) scale = value_of<V>(Int(int_of(scale) & std::int32_t(0xFF800000)));
  scale = bits > 0 ? scale : splat<V>(1);
  scale = bits < 0x7F800000 ? scale : splat<V>(1);
  return {scale, 1.0f / scale, Int{}};
}

/// The scale after one step of a per-tensor history: `scaled_max / amax`, the previous scale where amax is 0, infinite or NaN.
/// Source: Transformer Engine, delayed_scaling.cu.
OCTET_HD constexpr float scale_from_history(float amax, float scaled_max, float previous) {
  if (!(amax > 0.0f) || bits_of(amax) >= 0x7F800000u) return previous;
  const float scale = scaled_max / amax;
  return bits_of(scale) == 0x7F800000u ? 0x1.fffffep127f : scale;
}

}  // namespace octet
