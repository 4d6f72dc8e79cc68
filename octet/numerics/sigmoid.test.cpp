#include "octet/numerics/sigmoid.hpp"

#include <gtest/gtest.h>

#include "tests/testing/dual.hpp"
#include "tests/testing/floats.hpp"

namespace octet {
namespace {

using testing::Worst;

// Relative error in units of rounding, or, where the exact value is below the normal floats, the error in units of 2^-126.
double units(float got, long double exact) {
  return std::isnan(exact) ? (std::isnan(got) ? 0 : INFINITY) : double(std::fabs(got - exact) / (std::max(exact, 0x1p-126L) * 0x1p-24L));
}

TEST(Sigmoid, BothPartsKeepTheirRelativePrecision) {
  const auto exact = [](long double x) { return 1 / (1 + std::exp(-x)); };
  const Worst worst = testing::worst_over_floats(
      [&](float x) {
        const auto s = math::sigmoid(x);
        return std::max(units(s.value, exact(x)), units(s.complement, exact(-(long double)x)));
      },
      {0.0f, 87.0f, 88.0f, 104.0f}, 16411, 61);
  EXPECT_LE(worst.error, 6) << "at " << worst.at;
}

TEST(Sigmoid, GivesADualNumberItsSlope) {
  for (const double x : {-30.0, -1.0, 0.0, 0.5, 20.0}) {
    const auto s = math::sigmoid(testing::Dual(x, 1));
    const double e = std::exp(-std::fabs(x)), slope = e / ((1 + e) * (1 + e));
    EXPECT_NEAR(s.value.slope, slope, 8 * 0x1p-53 * slope) << x;
    EXPECT_NEAR(s.complement.slope, -slope, 8 * 0x1p-53 * slope) << x;
  }
}

}  // namespace
}  // namespace octet
