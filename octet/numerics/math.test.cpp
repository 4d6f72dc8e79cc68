#include "octet/numerics/math.hpp"

#include <gtest/gtest.h>

#include <complex>
#include <limits>

#include "tests/testing/dual.hpp"
#include "tests/testing/floats.hpp"

namespace octet {
namespace {

using testing::Dual, testing::ulp_error, testing::Worst;

constexpr float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();

// Long double is slow: every 61st float when exhaustive, 70 million of them.
template <class Error>
Worst worst_over_floats(Error error) {
  return testing::worst_over_floats(error, {}, 4099, 61);
}

// Long double (64 bits of mantissa) is the exact value as far as a float can see.
TEST(Math, ExpIsWithinOneUlpOverTheWholeRange) {
  const Worst worst = worst_over_floats([](float x) { return ulp_error(math::exp(x), std::exp((long double)x)); });
  EXPECT_LE(worst.error, 1.0) << "at " << worst.at;
}

TEST(Math, ExpOverflowsToInfinityAndUnderflowsGraduallyToZero) {
  EXPECT_EQ(math::exp(0.0f), 1.0f);
  EXPECT_EQ(math::exp(-0.0f), 1.0f);
  EXPECT_EQ(math::exp(infinity), infinity);
  EXPECT_EQ(math::exp(-infinity), 0.0f);
  EXPECT_TRUE(std::isnan(math::exp(nan)));
  EXPECT_TRUE(std::isfinite(math::exp(0x1.62e42ep6f)));  // the largest x whose e^x is a float
  EXPECT_EQ(math::exp(std::nextafter(0x1.62e42ep6f, 100.0f)), infinity);
  EXPECT_EQ(math::exp(-103.0f), 0x1p-149f);
  EXPECT_EQ(math::exp(-104.0f), 0.0f);
}

TEST(Math, ExpOfNonpositiveNumbersHasTheBitsOfExp) {
  const Worst worst = testing::worst_over_floats(
      [](float x) {
        const float a = math::exp(x), b = math::exp_nonpositive(x);
        return !(x > 0) && bits_of(a) != bits_of(b) && !(std::isnan(a) && std::isnan(b)) ? 1.0 : 0.0;
      },
      {-0.0f, -infinity, -103.0f, -103.97f, -104.0f, -87.0f, -87.34f, nan}, 1009, 1);
  EXPECT_EQ(worst.error, 0) << "at " << worst.at;
}

TEST(Math, LogIsWithinOneUlpForSubnormalsToo) {
  const Worst worst = worst_over_floats([](float x) { return x > 0 ? ulp_error(math::log(x), std::log((long double)x)) : 0; });
  EXPECT_LE(worst.error, 1.0) << "at " << worst.at;
  EXPECT_EQ(math::log(1.0f), 0.0f);
  EXPECT_EQ(math::log(0.0f), -infinity);
  EXPECT_EQ(math::log(-0.0f), -infinity);
  EXPECT_EQ(math::log(infinity), infinity);
  EXPECT_TRUE(std::isnan(math::log(-0x1p-149f)));
  EXPECT_TRUE(std::isnan(math::log(-infinity)));
  EXPECT_TRUE(std::isnan(math::log(nan)));
}

TEST(Math, TanhIsWithinTwoUlpAndOdd) {
  const Worst worst = worst_over_floats([](float x) { return ulp_error(math::tanh(x), std::tanh((long double)x)); });
  EXPECT_LE(worst.error, 2.0) << "at " << worst.at;
  const Worst odd = worst_over_floats([](float x) {
    const bool same = bits_of(math::tanh(-x)) == (bits_of(math::tanh(x)) ^ 0x80000000u);
    return same || std::isnan(x) ? 0 : 1;
  });
  EXPECT_EQ(odd.error, 0) << "at " << odd.at;
}

TEST(Math, SineAndCosineAreWithinOneTenMillionthUpToTwoToTheTwenty) {
  const Worst worst = worst_over_floats([](float x) {
    if (!(std::fabs(x) <= 0x1p20f)) return std::isnan(math::sin(x)) && std::isnan(math::cos(x)) ? 0.0 : double(INFINITY);
    const auto [sine, cosine] = math::sin_cos(x);
    return double(std::max(std::fabs(sine - std::sin((long double)x)), std::fabs(cosine - std::cos((long double)x))));
  });
  EXPECT_LE(worst.error, 1e-7) << "at " << worst.at;
}

TEST(Math, SineAndCosineOfSmallAnglesAreWithinTwoUlp) {
  const Worst worst = worst_over_floats([](float x) {
    if (!(std::fabs(x) <= 0.785398f)) return 0.0;
    return std::max(ulp_error(math::sin(x), std::sin((long double)x)), ulp_error(math::cos(x), std::cos((long double)x)));
  });
  EXPECT_LE(worst.error, 2.0) << "at " << worst.at;
}

// Whole multiples of pi / 2 are where a range reduction fails first.
TEST(Math, SineKeepsItsBoundAtTheNearestFloatsToMultiplesOfAQuarterTurn) {
  for (int n = 1; n < 667544; ++n) {
    const float x = float(n * 1.57079632679489661923132169163975144L);
    EXPECT_NEAR(math::sin(x), std::sin((long double)x), 1e-7) << x;
    EXPECT_NEAR(math::cos(x), std::cos((long double)x), 1e-7) << x;
  }
}

TEST(Math, SqrtIsCorrectlyRounded) {
  const Worst worst = worst_over_floats([](float x) { return x >= 0 ? ulp_error(math::sqrt(x), std::sqrt((long double)x)) : 0; });
  EXPECT_LE(worst.error, 0.5) << "at " << worst.at;
}

TEST(Math, RunsAtCompileTime) {
  static_assert(math::exp(0.0f) == 1.0f && math::log(1.0f) == 0.0f && math::tanh(0.0f) == 0.0f);
  static_assert(math::sin(0.0f) == 0.0f && math::cos(0.0f) == 1.0f && math::sqrt(4.0f) == 2.0f);
}

// A formula as an op writes it, on every kind of value.
template <class V>
V silu(V x) {
  using math::exp;
  return x / (1.0f + exp(-x));
}
template <class V>
V all_of_them(V x) {
  using math::exp, math::log, math::tanh, math::sin, math::cos, math::sqrt;
  return exp(sin(x)) * tanh(x * 0.7f) + log(sqrt(x + 2.0f)) * cos(x) - x / (x * x + 1.0f);
}

TEST(Math, OneFormulaRunsOnFloatVectorsDoubleAndDual) {
  typedef float Vector __attribute__((vector_size(32)));
  const float x = 0.8125f;
  const Vector many = silu(splat<Vector>(x));
  for (int i = 0; i < 8; ++i) EXPECT_EQ(many[i], silu(x));
  EXPECT_NEAR(silu(x), silu(double(x)), 1e-7);
  EXPECT_EQ(silu(Dual(x)).value, silu(double(x)));
}

TEST(Math, DualNumbersGiveTheDerivativeOfEveryFunction) {
  for (const double x : {-1.5, -0.25, 0.5, 2.0}) {
    const double h = 1e-30;  // complex step: no cancellation, so exact to rounding
    const std::complex<double> z(x, h);
    const double expected =
        std::imag(std::exp(std::sin(z)) * std::tanh(z * double(0.7f)) + std::log(std::sqrt(z + 2.0)) * std::cos(z) - z / (z * z + 1.0)) / h;
    EXPECT_NEAR(all_of_them(Dual(x, 1)).slope, expected, 1e-14 * (1 + std::fabs(expected)));
  }
  EXPECT_EQ(larger(Dual(3, 1), Dual(2, 5)).slope, 1);
  EXPECT_EQ(magnitude(Dual(-3, 1)).slope, -1);
}

}  // namespace
}  // namespace octet
