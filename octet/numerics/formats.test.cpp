#include "octet/numerics/formats.hpp"

#include "octet/numerics/rounding_sqnr.hpp"

#include <gtest/gtest.h>
#include <immintrin.h>

#include "tests/testing/code_table.hpp"
#include "tests/testing/floats.hpp"

#ifdef OCTET_CUDA_HEADERS
#include <cuda_fp8.h>
#endif

namespace octet {
namespace {

using testing::CodeTable, testing::Worst, testing::worst_over_floats;

template <class Format>
class Fp8 : public ::testing::Test {};
using Fp8Formats = ::testing::Types<E4M3, E5M2>;
TYPED_TEST_SUITE(Fp8, Fp8Formats);

TYPED_TEST(Fp8, ConstantsAreThoseOfTheTable) {
  const auto& finite = CodeTable::of<TypeParam>().finite();
  EXPECT_EQ(double(TypeParam::max), finite.back());
  EXPECT_EQ(std::size_t(TypeParam::max_code), finite.size() - 1);
  EXPECT_EQ(double(TypeParam::min_subnormal), finite[1]);
  EXPECT_EQ(double(TypeParam::min_normal), finite[std::size_t(1) << TypeParam::mantissa_bits]);
}

TYPED_TEST(Fp8, EveryCodeDecodesToItsValueInTheTable) {
  for (int code = 0; code < 256; ++code) {
    const double expected = CodeTable::of<TypeParam>().decode(std::uint8_t(code));
    const float got = decode<TypeParam>(std::uint8_t(code));
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(got)) << code;
    } else {
      EXPECT_EQ(bits_of(got), bits_of(float(expected))) << code;
    }
  }
}

TYPED_TEST(Fp8, EncodeFindsTheNearestCodeOfTheTable) {
  const CodeTable& codes = CodeTable::of<TypeParam>();
  const Worst worst = worst_over_floats([&](float x) { return encode<TypeParam>(x) == codes.encode(double(x)) ? 0 : 1; }, codes.marks());
  EXPECT_EQ(worst.error, 0) << "at " << worst.at << ": " << int(encode<TypeParam>(worst.at)) << " for " << int(codes.encode(worst.at));
}

TYPED_TEST(Fp8, EveryFiniteCodeSurvivesARoundTrip) {
  for (int code = 0; code < 256; ++code)
    if ((code & 0x7F) <= TypeParam::max_code) {
      EXPECT_EQ(int(encode<TypeParam>(decode<TypeParam>(std::uint8_t(code)))), code);
    }
}

TYPED_TEST(Fp8, EncodeEqualsNvidiasHeaderOnTheHost) {
#ifdef OCTET_CUDA_HEADERS
  constexpr auto kind = std::is_same_v<TypeParam, E4M3> ? __NV_E4M3 : __NV_E5M2;
  const auto differs = [](float x) { return encode<TypeParam>(x) == __nv_cvt_float_to_fp8(x, __NV_SATFINITE, kind) ? 0 : 1; };
  const Worst worst = worst_over_floats(differs, CodeTable::of<TypeParam>().marks());
  EXPECT_EQ(worst.error, 0) << "at " << worst.at;
#else
  GTEST_SKIP() << "cuda_fp8.h was not found when this was built";
#endif
}

// The two BF16 numbers around x, compared in double. Beyond the largest BF16 the upper one is 2^128.
std::uint16_t bf16_reference(float x) {
  const std::uint32_t size = bits_of(x) & 0x7FFFFFFFu, sign = bits_of(x) >> 31 << 15;
  if (std::isinf(x)) return std::uint16_t(sign | 0x7F80u);
  const std::uint32_t low = size >> 16;
  const auto value = [](std::uint32_t code) { return code == 0x7F80u ? 0x1p128 : double(float_of(code << 16)); };
  const double down = double(std::fabs(x)) - value(low), up = value(low + 1) - double(std::fabs(x));
  return std::uint16_t(sign | (up < down || (up == down && low % 2 == 1) ? low + 1 : low));
}

// Values 2^u with u evenly spread over all normal binades, through the format and back.
TYPED_TEST(Fp8, RoundingAloneLeavesTheSqnrOfTheFormula) {
  using Format = TypeParam;
  const double low = std::log2(double(Format::min_normal)), high = std::floor(std::log2(double(Format::max)));
  double signal = 0, noise = 0;
  for (int i = 0; i < 200000; ++i) {
    const double x = std::exp2(low + (high - low) * (i + 0.5) / 200000), octave = std::exp2(std::floor(std::log2(x)));
    const double error = x - double(decode<Format>(encode<Format>(float(x))));
    signal += x * x / (octave * octave), noise += error * error / (octave * octave);  // each binade counts alike
  }
  EXPECT_NEAR(rounding_sqnr<Format>(), 10 * std::log10(signal / noise), 0.05);
}

TEST(Bf16, EncodeIsTheNearerNeighbourTiesToEven) {
  const Worst worst = worst_over_floats(
      [](float x) {
        const std::uint16_t got = to_bf16(x).bits;
        if (std::isnan(x)) return (got & 0x7F80u) == 0x7F80u && (got & 0x40u) != 0 ? 0 : 1;  // quiet
        return got == bf16_reference(x) ? 0 : 1;
      },
      {0x1.fep127f, 0x1.ffp127f, 0x1.fffffep127f, INFINITY, 0x1p-126f, 0x1p-133f, 0x1p-134f, 0.0f});
  EXPECT_EQ(worst.error, 0) << "at " << worst.at;
}

// A tie, and its neighbours, between every two BF16 numbers.
TEST(Bf16, EveryTieGoesToEven) {
  for (std::uint32_t low = 0; low < 0x7F80u; ++low)
    for (const std::uint32_t below : {0x7FFFu, 0x8000u, 0x8001u}) {
      const float x = float_of(low << 16 | below);
      ASSERT_EQ(to_bf16(x).bits, bf16_reference(x)) << x;
      ASSERT_EQ(to_bf16(-x).bits, bf16_reference(-x)) << -x;
    }
}

TEST(Bf16, DecodeIsTheUpperHalfOfAFloatAndRoundTrips) {
  for (std::uint32_t code = 0; code < 0x10000u; ++code) {
    const float x = to_float(Bf16{std::uint16_t(code)});
    ASSERT_EQ(bits_of(x), code << 16);
    if (std::isnan(x)) continue;
    ASSERT_EQ(to_bf16(x).bits, code);
  }
}

[[gnu::target("f16c")]] std::uint16_t hardware_fp16(float x) { return _cvtss_sh(x, _MM_FROUND_TO_NEAREST_INT); }
[[gnu::target("f16c")]] float hardware_float(std::uint16_t h) { return _cvtsh_ss(h); }

TEST(Fp16, EqualsTheF16cInstructionBothWays) {
  if (!__builtin_cpu_supports("f16c")) GTEST_SKIP() << "this machine has no F16C";
  const Worst worst = worst_over_floats([](float x) { return to_fp16(x).bits == hardware_fp16(x) ? 0 : 1; },
                                        {0x1p-24f, 0x1p-25f, 0x1p-14f, 65504.0f, 65520.0f, 65536.0f, INFINITY});
  EXPECT_EQ(worst.error, 0) << "at " << worst.at;
  for (std::uint32_t code = 0; code < 0x10000u; ++code)
    ASSERT_EQ(bits_of(to_float(Fp16{std::uint16_t(code)})), bits_of(hardware_float(std::uint16_t(code)))) << code;
}

TEST(Fp16, EveryTieAmongItsNumbersEqualsTheInstruction) {
  if (!__builtin_cpu_supports("f16c")) GTEST_SKIP() << "this machine has no F16C";
  for (std::uint32_t code = 0; code < 0x7BFFu; ++code) {
    const float tie = 0.5f * (hardware_float(std::uint16_t(code)) + hardware_float(std::uint16_t(code + 1)));
    for (const std::uint32_t d : {0u, 1u, 2u}) {
      const float x = float_of(bits_of(tie) + d - 1);
      ASSERT_EQ(to_fp16(x).bits, hardware_fp16(x)) << x;
    }
  }
}

}  // namespace
}  // namespace octet
