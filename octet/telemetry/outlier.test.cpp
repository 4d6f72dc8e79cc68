#include "octet/telemetry/outlier.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/testing/testing.hpp"

namespace octet::telemetry {
namespace {

TEST(LossWindow, TheScoreIsThatOfTheLast128Values) {
  const auto values = testing::gaussian(300, 1);
  LossWindow window;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t first = i > 128 ? i - 128 : 0, n = i - first;
    if (n < 16) {
      EXPECT_TRUE(std::isnan(window.z_score(values[i])));
    } else {
      // Independent form: variance as the mean of squares less the square of the mean, in long double.
      long double sum = 0, squares = 0;
      for (std::size_t j = first; j < i; ++j) sum += values[j], squares += (long double)(values[j]) * values[j];
      const long double mean = sum / n, deviation = std::sqrt(squares / n - mean * mean);
      // Both sums of n terms of size ~1 err by at most about n * 2^-53 relative to a deviation of ~1.
      EXPECT_NEAR(window.z_score(values[i]), double((values[i] - mean) / deviation), 128 * 0x1p-50);
    }
    window.add(values[i]);
  }
}

TEST(LossWindow, ValuesThatAreNotFiniteAreLeftOut) {
  LossWindow window(4, 2);
  for (const double x : {1.0, double(NAN), 3.0, double(INFINITY)}) window.add(x);
  EXPECT_EQ(window.values(), (std::vector<double>{1, 3}));
  EXPECT_EQ(window.z_score(4), 2);
}

TEST(LossWindow, AWindowOfEqualValuesScoresNothing) {
  LossWindow window(4, 2);
  window.add(1), window.add(1);
  EXPECT_TRUE(std::isnan(window.z_score(2)));
}

TEST(LossWindow, ARestoredWindowGivesTheSameBits) {
  const auto values = testing::gaussian(200, 2);
  LossWindow window;
  for (const float v : values) window.add(v);
  LossWindow restored;
  restored.set_values(window.values());
  EXPECT_EQ(restored.z_score(0.7), window.z_score(0.7));
  LossWindow shorter(16);
  shorter.set_values(window.values());
  EXPECT_EQ(shorter.values().size(), 16u);
  EXPECT_EQ(shorter.values().back(), window.values().back());
}

}  // namespace
}  // namespace octet::telemetry
