#include "octet/telemetry/report/series.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace octet::telemetry::report {
namespace {

TEST(Series, SmoothingIsTheWeightedMeanItSays) {
  Points points;
  for (int i = 0; i < 40; ++i) points.push_back({double(i), std::sin(i) + 3});
  const Points out = smoothed(points, 3);
  ASSERT_EQ(out.size(), points.size());
  // From the twelfth point on the window is 3, a = 2/3; the weights before it are what the formula's own a gave them.
  std::vector<double> weights;
  for (int i = 0; i < 40; ++i) {
    const double w = std::min(3.0, (i + 1) / 4.0), a = w > 1 ? 1 - 1 / w : 0;
    for (double& x : weights) x *= a;
    weights.push_back(1);
    double sum = 0, total = 0;
    for (std::size_t k = 0; k < weights.size(); ++k) sum += weights[k] * points[k].y, total += weights[k];
    EXPECT_NEAR(out[std::size_t(i)].y, sum / total, 40 * 4 * 0x1p-52);
  }
}

TEST(Series, SmoothingKeepsAConstantAndDropsWhatIsNotFinite) {
  const Points out = smoothed({{0, 2}, {1, NAN}, {2, 2}, {3, INFINITY}, {4, 2}}, 10);
  ASSERT_EQ(out.size(), 3u);
  for (const Point& p : out) EXPECT_EQ(p.y, 2);
  EXPECT_EQ(out[1].x, 2);
}

TEST(Series, ThinningKeepsEndsSpikesAndOrder) {
  Points points;
  for (int i = 0; i < 10000; ++i) points.push_back({double(i), i == 4321 ? 100.0 : std::sin(i * 0.001)});
  const Points out = thinned(points, 600);
  ASSERT_EQ(out.size(), 600u);
  EXPECT_EQ(out.front().x, 0);
  EXPECT_EQ(out.back().x, 9999);
  bool spike = false;
  for (std::size_t i = 1; i < out.size(); ++i) {
    EXPECT_LT(out[i - 1].x, out[i].x);
    spike = spike || out[i].y == 100;
  }
  EXPECT_TRUE(spike);
}

TEST(Series, ThinningWorksJustAboveTheLimitAndLeavesShortLinesAlone) {
  Points points;
  for (int i = 0; i < 20; ++i) {
    points.push_back({double(i), double(i % 3)});
    for (std::size_t most = 3; most < 25; ++most) EXPECT_EQ(thinned(points, most).size(), std::min(points.size(), most));
  }
}

TEST(Series, ABundleIsMeanAndRangeWhereAllLinesAre) {
  const std::vector<Points> lines{{{1, 1}, {2, 2}, {3, 3}}, {{2, 4}, {3, 5}, {4, 6}}};
  const Bundle b = bundled(lines);
  ASSERT_EQ(b.mean.size(), 2u);
  EXPECT_EQ(b.mean[0].x, 2);
  EXPECT_EQ(b.mean[0].y, 3);
  EXPECT_EQ(b.low[1].y, 3);
  EXPECT_EQ(b.high[1].y, 5);
}

}  // namespace
}  // namespace octet::telemetry::report
