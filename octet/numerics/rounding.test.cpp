#include "octet/numerics/rounding.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "octet/numerics/philox.hpp"
#include "tests/testing/code_table.hpp"
#include "tests/testing/floats.hpp"

namespace octet {
namespace {

using testing::CodeTable, testing::Worst, testing::worst_over_floats;

constexpr std::uint32_t extremes[] = {0u, 1u, 0x7FFFFFFFu, 0x80000000u, 0xFFFFFFFFu};

template <class Format>
class Stochastic : public ::testing::Test {};
using Fp8Formats = ::testing::Types<E4M3, E5M2>;
TYPED_TEST_SUITE(Stochastic, Fp8Formats);

TYPED_TEST(Stochastic, NeverLeavesTheTwoNeighboursAndReachesBoth) {
  const CodeTable& codes = CodeTable::of<TypeParam>();
  const Worst worst = worst_over_floats(
      [&](float x) {
        if (std::isnan(x)) return encode_stochastic<TypeParam>(x, 5) == 0x7F ? 0 : 1;
        const std::size_t low = codes.below(std::fabs(double(x)));
        const bool exact = codes.finite()[low] == std::fabs(double(x)), saturated = low + 1 == codes.finite().size();
        const std::uint8_t sign = std::signbit(x) ? 0x80 : 0;
        bool down = false, up = false;
        for (const std::uint32_t random : extremes) {
          const std::uint8_t code = encode_stochastic<TypeParam>(x, random);
          if (code == (sign | low)) down = true;
          else if (code == (sign | (low + 1))) up = true;
          else return 1;
        }
        return down && up == !(exact || saturated) ? 0 : 1;
      },
      codes.marks());
  EXPECT_EQ(worst.error, 0) << "at " << worst.at;
}

TYPED_TEST(Stochastic, KeepsEveryCodeWhateverTheRandomWord) {
  for (int code = 0; code < 256; ++code)
    for (const std::uint32_t random : extremes) {
      if ((code & 0x7F) > TypeParam::max_code) continue;
      EXPECT_EQ(int(encode_stochastic<TypeParam>(decode<TypeParam>(std::uint8_t(code)), random)), code);
    }
}

TYPED_TEST(Stochastic, SaturatesAndKeepsNan) {
  for (const std::uint32_t random : extremes)
    for (const float x : {TypeParam::max * 1.001f, TypeParam::max * 4, std::numeric_limits<float>::infinity()}) {
      EXPECT_EQ(encode_stochastic<TypeParam>(x, random), TypeParam::max_code);
      EXPECT_EQ(encode_stochastic<TypeParam>(-x, random), 0x80 | TypeParam::max_code);
      EXPECT_EQ(encode_stochastic<TypeParam>(-std::numeric_limits<float>::quiet_NaN(), random), TypeParam::nan_code);
    }
}

// A draw is one of two neighbours `gap` apart, up with probability p: the mean of n has standard error gap sqrt(p (1 - p) / n).
TYPED_TEST(Stochastic, HasTheMeanOfItsInput) {
  const CodeTable& codes = CodeTable::of<TypeParam>();
  constexpr int n = 1 << 14;
  for (int i = 0; i < 200; ++i) {
    const RandomWords r = philox(11, std::uint64_t(i));
    const std::size_t low = r.w[0] % (codes.finite().size() - 1);  // every gap between two codes is as likely: subnormals too
    const double down = codes.finite()[low], gap = codes.finite()[low + 1] - down;
    const float x = float(down + gap * double(uniform(r.w[1])));
    const double p = (double(x) - down) / gap;
    double sum = 0;
    for (int k = 0; k < n; ++k)
      sum += codes.decode(encode_stochastic<TypeParam>(x, philox(12, std::uint64_t(i), std::uint64_t(k)).w[0])) - double(x);
    EXPECT_LE(std::fabs(sum / n), 5 * gap * std::sqrt(p * (1 - p) / n)) << x;
  }
}

// Not a statistic: over all values of the bits that decide, the mean is x itself. A step goes up for exactly the share that is due.
TYPED_TEST(Stochastic, RoundsUpForExactlyTheDueShareOfAllRandomWords) {
  constexpr int drop = 23 - TypeParam::mantissa_bits;
  for (const std::uint32_t fraction : {1u, 12345u, (1u << drop) / 2, (1u << drop) - 1}) {
    const float x = float_of((127u << 23) + (3u << drop) + fraction);
    const std::uint8_t low = TypeParam::bias << TypeParam::mantissa_bits | 3;
    std::uint32_t ups = 0;
    for (std::uint32_t k = 0; k < (1u << drop); ++k) ups += encode_stochastic<TypeParam>(x, k << (32 - drop)) - low;
    EXPECT_EQ(ups, fraction);
  }
}

TEST(StochasticBf16, NeverLeavesTheTwoNeighboursAndKeepsBf16Values) {
  const Worst worst = worst_over_floats([](float x) {
    const std::uint32_t bits = bits_of(x), low = bits >> 16;
    if (std::isnan(x) || std::isinf(x)) return to_bf16_stochastic(x, 77).bits == to_bf16(x).bits ? 0 : 1;
    const bool largest = (low & 0x7FFFu) == 0x7F7Fu, exact = (bits & 0xFFFFu) == 0;
    for (const std::uint32_t random : extremes) {
      const std::uint32_t code = to_bf16_stochastic(x, random).bits;
      if (code != low && (exact || largest || code != low + 1)) return 1;
    }
    return to_bf16_stochastic(x, 0).bits == low && (exact || largest || to_bf16_stochastic(x, ~0u).bits == low + 1) ? 0 : 1;
  });
  EXPECT_EQ(worst.error, 0) << "at " << worst.at;
}

TEST(StochasticBf16, RoundsUpForExactlyTheDueShareOfAllRandomWords) {
  for (const std::uint32_t fraction : {1u, 777u, 0x8000u, 0xFFFFu})
    for (const std::uint32_t high : {0x3F80u, 0x0001u, 0xC2FFu}) {
      std::uint32_t ups = 0;
      for (std::uint32_t k = 0; k < 0x10000u; ++k) ups += to_bf16_stochastic(float_of(high << 16 | fraction), k << 16).bits - high;
      EXPECT_EQ(ups, fraction);
    }
}

}  // namespace
}  // namespace octet
