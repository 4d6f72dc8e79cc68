#include "octet/telemetry/report/axis.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace octet::telemetry::report {
namespace {

TEST(Axis, EndsMapTo0And1OnEveryScale) {
  for (const auto kind : {Axis::Kind::linear, Axis::Kind::log, Axis::Kind::asinh}) {
    const Axis axis{.kind = kind, .low = 0.5, .high = 8, .knee = 1};
    EXPECT_EQ(axis.place(0.5), 0);
    EXPECT_EQ(axis.place(8), 1);
    EXPECT_GT(axis.place(3), axis.place(2));
  }
  EXPECT_DOUBLE_EQ((Axis{.kind = Axis::Kind::log, .low = 1, .high = 16}.place(4)), 0.5);
  EXPECT_DOUBLE_EQ((Axis{.kind = Axis::Kind::asinh, .low = -3, .high = 3}.place(0)), 0.5);
}

TEST(Axis, TicksAreRoundWithinTheEndsAndFew) {
  EXPECT_EQ((Axis{.low = 0, .high = 400}.ticks(4)), (std::vector<double>{0, 100, 200, 300, 400}));
  for (const auto kind : {Axis::Kind::linear, Axis::Kind::log, Axis::Kind::asinh})
    for (const double low : {0.001, 1.3, 700.0})
      for (const double width : {1.5, 3.0, 50.0, 1e6}) {
        const Axis axis{.kind = kind, .low = kind == Axis::Kind::asinh ? -low : low, .high = low * width, .knee = low};
        const auto ticks = axis.ticks(5);
        EXPECT_GE(ticks.size(), 1u);
        EXPECT_LE(ticks.size(), 13u);
        for (const double t : ticks) EXPECT_TRUE(axis.place(t) > -1e-6 && axis.place(t) < 1 + 1e-6) << low << " " << width << " " << t;
      }
}

TEST(Axis, ADifferenceShowsItsZeroAndBothSigns) {
  const auto ticks = Axis{.kind = Axis::Kind::asinh, .low = -2, .high = 40, .knee = 0.5}.ticks(5);
  EXPECT_NE(std::find(ticks.begin(), ticks.end(), 0.0), ticks.end());
  EXPECT_LT(ticks.front(), 0);
  EXPECT_GT(ticks.back(), 0);
}

TEST(Axis, HostileEndsGiveFewTicksAndEnd) {
  const double huge = 9.2e18, most = std::numeric_limits<double>::max();
  const Axis axes[] = {{.low = huge, .high = huge + 2048},
                       {.low = 5, .high = 5},
                       {.low = -most, .high = most},
                       {.low = 0, .high = most},
                       {.kind = Axis::Kind::log, .low = 1e-300, .high = 1e300},
                       {.kind = Axis::Kind::asinh, .low = -most, .high = most, .knee = 1e-300}};
  for (const Axis& axis : axes) EXPECT_LE(axis.ticks(5).size(), 20u);
  const Axis empty = linear_axis(NAN, NAN);
  EXPECT_LT(empty.low, empty.high);
  EXPECT_LT(linear_axis(3, 3).low, linear_axis(3, 3).high);
}

TEST(Axis, TicksReadAsPeopleWriteThem) {
  EXPECT_EQ(tick_text(0.5), "0.5");
  EXPECT_EQ(tick_text(12000), "12,000");
  EXPECT_EQ(tick_text(1e-5), "1e-05");
  EXPECT_EQ(tick_text(0), "0");
}

}  // namespace
}  // namespace octet::telemetry::report
