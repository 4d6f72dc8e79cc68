#include "octet/numerics/sigmoid.hpp"

#include <gtest/gtest.h>

#include "tests/testing/dual.hpp"
#include "tests/testing/floats.hpp"

namespace octet {
namespace {

using testing::Worst;

// Relative error in units of rounding; what is below e^-86 must be 0.
double units(float got, long double exact) {
  if (std::isnan(exact)) return std::isnan(got) ? 0 : INFINITY;
  return exact < std::exp(-86.0L) ? (got == 0 ? 0 : INFINITY) : double(std::fabs(got - exact) / (exact * 0x1p-24L));
}

TEST(Sigmoid, BothPartsKeepTheirRelativePrecision) {
  const auto exact = [](long double x) { return x == 86 || x == -86 ? std::exp(std::min(x, 0.0L)) : 1 / (1 + std::exp(-x)); };
  const Worst worst = testing::worst_over_floats(
      [&](float x) {
        const auto s = math::sigmoid(x);
        const double allowed = 6 + std::min(std::fabs(double(x)), 86.0) / 4;
        return std::max(units(s.value, exact(x)), units(s.complement, exact(-(long double)x))) / (std::isnan(x) ? 1 : allowed);
      },
      {0.0f, 1.0f, 80.0f, 86.0f, 104.0f}, 16411, 61);
  EXPECT_LE(worst.error, 1) << "at " << worst.at;
}

TEST(Sigmoid, GivesADualNumberItsSlope) {
  for (const double x : {-30.0, -1.0, 0.0, 0.5, 20.0}) {
    const auto s = math::sigmoid(testing::Dual(x, 1));
    const double e = std::exp(-std::fabs(x)), slope = e / ((1 + e) * (1 + e));
    EXPECT_NEAR(s.value.slope, slope, 8 * 0x1p-53 * slope) << x;
    EXPECT_NEAR(s.complement.slope, -slope, 8 * 0x1p-53 * s.complement.value) << x;  // it is what the two are rounded to that cancels
  }
}

}  // namespace
}  // namespace octet
