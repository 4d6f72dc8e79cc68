#include "octet/numerics/scale.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "tests/testing/floats.hpp"

namespace octet {
namespace {

using testing::Worst, testing::worst_over_floats;

constexpr float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
constexpr float bf16_max = 0x1.fep127f, float_max = 0x1.fffffep127f;

// Published bit patterns of Transformer Engine's rules, as listed in its source's port: a history whose previous scale is 7, the two
// quotients, the power of two for BF16 input, and the two E8M0 codes.
struct Golden {
  float amax;
  std::uint32_t history, quotient_e4m3, quotient_e5m2, power_e4m3;
  int e8m0_e4m3, e8m0_e5m2;
};
constexpr std::uint32_t one = 0x3F800000u, seven = 0x40E00000u;
constexpr Golden golden[] = {
    {0.0f, seven, one, one, one, 0, 0},
    {1e-45f, 0x7f7fffff, 0x7f7fffff, 0x7f7fffff, 0x7f000000, 0, 0},
    {1e-30f, 0x75b0b471, 0x75b0b471, 0x7930b471, 0x75800000, 19, 12},
    {0x1p-14f, 0x4ae00000, 0x4ae00000, 0x4e600000, 0x4a800000, 105, 98},
    {0.001f, 0x48dabfff, 0x48dabfff, 0x4c5abfff, 0x48800000, 109, 102},
    {0.1f, 0x458c0000, 0x458c0000, 0x490c0000, 0x45800000, 115, 108},
    {1.0f, 0x43e00000, 0x43e00000, 0x47600000, 0x43800000, 119, 112},
    {3.0f, 0x43155555, 0x43155555, 0x46955555, 0x43000000, 120, 113},
    {447.0f, 0x3f80494e, 0x3f80494e, 0x4300494e, one, 127, 120},
    {448.0f, one, one, 0x43000000, one, 127, 120},
    {449.0f, 0x3f7f6e0a, 0x3f7f6e0a, 0x42ff6e0a, 0x3f000000, 128, 121},
    {57344.0f, 0x3c000000, 0x3c000000, one, 0x3c000000, 134, 127},
    {1e10f, 0x33406a1f, 0x33406a1f, 0x36c06a1f, 0x33000000, 152, 145},
    {bf16_max, 0x03e0e0e1, 0x03e0e0e1, 0x0760e0e1, 0x03800000, 247, 240},
    {infinity, seven, one, one, one, 254, 254},
    {nan, seven, one, one, one, 255, 255},
};

// The one body of the rules, for a single value.
float scale_from_amax(float amax, float format_max, bool power_of_two, float overflow = float_max) {
  const ScaleRule rule = power_of_two ? ScaleRule::power_of_two : ScaleRule::quotient;
  return block_scale(amax, {.rule = rule, .format_max = format_max, .overflow = overflow}).scale;
}
BlockScale<float> e8m0_scale(float amax, float format_max) {
  return block_scale(amax, {.rule = ScaleRule::e8m0, .format_max = format_max});
}
int e8m0_from_amax(float amax, float format_max) { return e8m0_scale(amax, format_max).code; }

TEST(Scale, GivesTheGoldenBitPatternsOfEveryRule) {
  for (const Golden& g : golden) {
    SCOPED_TRACE(g.amax);
    EXPECT_EQ(bits_of(scale_from_history(g.amax, E4M3::max, 7.0f)), g.history);
    EXPECT_EQ(bits_of(scale_from_amax(g.amax, E4M3::max, false)), g.quotient_e4m3);
    EXPECT_EQ(bits_of(scale_from_amax(g.amax, E5M2::max, false)), g.quotient_e5m2);
    EXPECT_EQ(bits_of(scale_from_amax(g.amax, E4M3::max, true, bf16_max)), g.power_e4m3);
    if (std::isnan(g.amax)) continue;  // a maximum ignores NaN
    EXPECT_EQ(int(e8m0_from_amax(g.amax, E4M3::max)), g.e8m0_e4m3);
    EXPECT_EQ(int(e8m0_from_amax(g.amax, E5M2::max)), g.e8m0_e5m2);
  }
}

// max / amax rounded to 24 bits, ties to even, by long division of the integer mantissas.
float quotient_reference(float max, float amax) {
  int e1 = 0, e2 = 0;
  const std::uint64_t m1 = std::uint64_t(std::frexp(max, &e1) * 0x1p24f), m2 = std::uint64_t(std::frexp(amax, &e2) * 0x1p24f);
  int exponent = e1 - e2 - 32;  // max / amax = (m1 * 2^32 / m2) * 2^exponent
  std::uint64_t q = (m1 << 32) / m2;
  bool rest = (m1 << 32) % m2 != 0, half = false;
  while (q >= (1u << 24)) rest = rest || half, half = (q & 1) != 0, q >>= 1, ++exponent;
  if (half && (rest || q % 2 == 1)) ++q;
  return float(std::ldexp(double(q), exponent));  // beyond the largest float: infinity
}

// The largest power of two s with s * amax <= max, but at most 2^127: products of powers of two are exact in double.
float power_reference(float max, float amax) {
  int s = std::min(127, std::ilogb(max) - std::ilogb(amax) - 2);  // certainly too small, or the limit
  while (s < 127 && std::ldexp(double(amax), s + 1) <= double(max)) ++s;
  return std::ldexp(1.0f, s);
}

// The smallest e with amax <= max * 2^e, as an E8M0 code.
int e8m0_reference(float max, float amax) {
  if (std::isnan(amax)) return 255;
  if (amax == 0) return 0;
  if (std::isinf(amax)) return 254;
  int e = std::max(-127, std::ilogb(amax) - std::ilogb(max) - 2);  // certainly too small
  while (e < 127 && std::ldexp(double(max), e) < double(amax)) ++e;
  return e + 127;
}

// Worst over all amaxes of a rule, for both formats. A rule takes (amax, format's largest value) and returns whether it holds.
template <class Rule>
void expect_for_every_amax(Rule holds, std::uint32_t stride) {
  for (const float max : {E4M3::max, E5M2::max}) {
    const Worst worst = worst_over_floats([&](float x) { return std::signbit(x) || holds(x, max) ? 0 : 1; },
                                          {E4M3::max, E5M2::max, 1.0f, 0x1p-149f, 0x1p-126f, bf16_max, float_max, infinity}, stride);
    EXPECT_EQ(worst.error, 0) << "amax " << worst.at << ", format's maximum " << max;
  }
}

TEST(Scale, QuotientIsTheCorrectlyRoundedOneForEveryBf16Amax) {
  expect_for_every_amax(
      [](float amax, float max) {
        const float got = scale_from_amax(amax, max, false);
        if (amax == 0 || !std::isfinite(amax)) return got == 1.0f;
        const float quotient = quotient_reference(max, amax);
        return got == (std::isinf(quotient) ? float_max : quotient);
      },
      65537);
}

TEST(Scale, PowerOfTwoIsTheLargestThatDoesNotPassTheMaximum) {
  expect_for_every_amax(
      [](float amax, float max) {
        const float got = scale_from_amax(amax, max, true, bf16_max);
        return amax == 0 || !std::isfinite(amax) ? got == 1.0f : got == power_reference(max, amax);
      },
      65537);
}

TEST(Scale, AnOverflowingQuotientGivesTheLargestValueOfTheInputsType) {
  EXPECT_EQ(scale_from_amax(1e-40f, E4M3::max, false), float_max);
  EXPECT_EQ(scale_from_amax(1e-40f, E4M3::max, false, bf16_max), bf16_max);
  EXPECT_EQ(scale_from_amax(1e-40f, E4M3::max, true, bf16_max), 0x1p127f);
  EXPECT_EQ(scale_from_amax(1e-40f, E4M3::max, true), 0x1p127f);
}

TEST(Scale, AHistoryKeepsItsPreviousScaleWithoutAUsableAmaxAndHonoursTheMargin) {
  for (const float amax : {0.0f, infinity, nan}) EXPECT_EQ(scale_from_history(amax, E4M3::max, 0.75f), 0.75f);
  EXPECT_EQ(scale_from_history(1e-45f, E5M2::max, 2.0f), float_max);
  EXPECT_EQ(scale_from_history(2.0f, E4M3::max * 0.25f, 1.0f), 56.0f);  // margin 2
}

TEST(Scale, HistoryEqualsTheQuotientWhereverTheAmaxIsUsable) {
  expect_for_every_amax(
      [](float amax, float max) {
        const float got = scale_from_history(amax, max, 0.75f);
        return amax == 0 || !std::isfinite(amax) ? got == 0.75f : bits_of(got) == bits_of(scale_from_amax(amax, max, false));
      },
      4099);
}

// amax * RN(1 / max) rounds once more than amax / max: exactly one float per format falls on the wrong side.
constexpr std::uint32_t exception_e4m3 = 0x04600001u, exception_e5m2 = 0x07e00001u;

TEST(E8M0, CodeOfABlockIsTheCeilingOfItsLogarithmButForOneFloatPerFormat) {
  expect_for_every_amax(
      [](float amax, float max) {
        const std::uint32_t exception = max == E4M3::max ? exception_e4m3 : exception_e5m2;
        return std::isnan(amax) || bits_of(amax) == exception || int(e8m0_from_amax(amax, max)) == e8m0_reference(max, amax);
      },
      65537);
  for (const auto& [bits, max] : {std::pair(exception_e4m3, E4M3::max), std::pair(exception_e5m2, E5M2::max)}) {
    EXPECT_EQ(int(e8m0_from_amax(float_of(bits), max)), 0);
    EXPECT_EQ(e8m0_reference(max, float_of(bits)), 1);
  }
}

TEST(E8M0, MultiplierOfABlockIsThePowerOfTwoScaleButForOneFloat) {
  expect_for_every_amax(
      [](float amax, float max) {
        if (amax < 0x1p-126f || !std::isfinite(amax)) return true;
        const std::uint32_t exception = max == E4M3::max ? exception_e4m3 : exception_e5m2;
        return bits_of(amax) == exception || e8m0_scale(amax, max).scale == scale_from_amax(amax, max, true);
      },
      4099);
}

TEST(E8M0, EncodeIsTheSmallestPowerNotBelowAndEndsAtTwoToThe127) {
  const Worst worst = worst_over_floats([](float x) {
    if (std::signbit(x)) return 0;
    const int code = encode_e8m0(x);
    if (std::isnan(x)) return code == 255 ? 0 : 1;
    const bool enough = code == 254 || std::ldexp(1.0, code - 127) >= double(x);
    const bool least = code == 0 || std::ldexp(1.0, code - 128) < double(x);
    return enough && least ? 0 : 1;
  });
  EXPECT_EQ(worst.error, 0) << "at " << worst.at;
}

TEST(E8M0, DecodesEveryCodeAndItsInverse) {
  for (int code = 0; code < 255; ++code) {
    EXPECT_EQ(decode_e8m0(std::uint8_t(code)), std::ldexp(1.0f, code - 127)) << code;
    const BlockScale<float> s = e8m0_scale(std::ldexp(1.0f, code - 127), 1.0f);
    EXPECT_EQ(int(s.code), code);
    EXPECT_EQ(s.scale, std::ldexp(1.0f, 127 - code)) << code;
    EXPECT_EQ(s.descale, std::ldexp(1.0f, code - 127)) << code;
    EXPECT_EQ(int(encode_e8m0(decode_e8m0(std::uint8_t(code)))), code);
  }
  EXPECT_TRUE(std::isnan(decode_e8m0(255)));
}

TEST(Scale, ADescaleTimesItsScaleIsOneButForItsRounding) {
  for (const ScaleRule rule : {ScaleRule::quotient, ScaleRule::power_of_two})
    expect_for_every_amax(
        [&](float amax, float max) {
          const auto s = block_scale(amax, {.rule = rule, .format_max = max, .overflow = float_max});
          const double one = double(s.scale) * double(s.descale);  // exact
          const double places = rule == ScaleRule::power_of_two && s.scale <= 0x1p126f ? 0 : s.descale < 0x1p-126f ? 0x1p-22 : 0x1p-24;
          return std::fabs(one - 1) <= places;
        },
        65537);
}

}  // namespace
}  // namespace octet
