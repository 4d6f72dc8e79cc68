#include "octet/numerics/power.hpp"

#include <gtest/gtest.h>

#include "tests/testing/floats.hpp"

namespace octet {
namespace {

using testing::Worst;

TEST(Power, LogarithmIsWithinItsBoundOverAllPositiveFloats) {
  const Worst worst = testing::worst_over_floats([](float x) {
    if (!(x > 0) || std::isinf(x)) return 0.0;
    const long double exact = std::log2((long double)x);
    return double(std::fabs(math::log2_positive(x) - exact) / (0x1p-20L + 0x1p-24L * std::fabs(exact)));
  });
  EXPECT_LE(worst.error, 1.0) << "at " << worst.at;
}

TEST(Power, PowerIsWithinItsBoundAndClampedBeyondItsRange) {
  const Worst worst = testing::worst_over_floats([](float x) {
    if (std::isnan(x)) return std::isnan(math::exp2_within_126(x)) ? 0.0 : double(INFINITY);
    const long double exact = std::exp2(std::fmin(std::fmax((long double)x, -126.0L), 126.0L));
    return double(std::fabs(math::exp2_within_126(x) - exact) / exact);
  });
  EXPECT_LE(worst.error, 0x1p-21) << "at " << worst.at;
}

TEST(Power, PowersOfTwoAreExact) {
  for (int n = -126; n <= 126; ++n) {
    EXPECT_EQ(math::exp2_within_126(float(n)), std::ldexp(1.0f, n));
    EXPECT_EQ(math::log2_positive(std::ldexp(1.0f, n)), float(n));
  }
  EXPECT_EQ(math::log2_positive(0x1p-149f), -149);
}

}  // namespace
}  // namespace octet
