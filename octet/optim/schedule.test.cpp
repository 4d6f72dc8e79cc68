#include "octet/optim/schedule.hpp"

#include <gtest/gtest.h>

namespace octet::optim {
namespace {

using Kind = ScheduleConfig::Kind;

TEST(Schedule, TheRateRisesLinearlyToItsPeak) {
  for (const Kind kind : {Kind::constant, Kind::linear, Kind::cosine, Kind::wsd}) {
    const ScheduleConfig c{.kind = kind, .warmup = 0.1};
    EXPECT_EQ(rate_factor(c, 0), 0);
    EXPECT_NEAR(rate_factor(c, 0.05), 0.5, 1e-15);
    EXPECT_NEAR(rate_factor(c, 0.1), 1, 1e-15);
  }
}

TEST(Schedule, EveryFallingKindEndsAtItsFinalRatio) {
  for (const Kind kind : {Kind::linear, Kind::cosine, Kind::wsd})
    EXPECT_NEAR(rate_factor({.kind = kind, .final_ratio = 0.2}, 1), 0.2, 1e-12);
  EXPECT_EQ(rate_factor({.kind = Kind::constant}, 1), 1);
}

TEST(Schedule, HalfWayDownCosineAndLineMeet) {
  const double middle = 0.1 + 0.45;
  EXPECT_NEAR(rate_factor({.kind = Kind::cosine, .warmup = 0.1, .final_ratio = 0}, middle), 0.5, 1e-12);
  EXPECT_NEAR(rate_factor({.kind = Kind::linear, .warmup = 0.1, .final_ratio = 0}, middle), 0.5, 1e-12);
}

TEST(Schedule, WsdIsLevelUntilItsDecay) {
  const ScheduleConfig c{.kind = Kind::wsd, .warmup = 0.1, .decay = 0.2, .final_ratio = 0};
  EXPECT_EQ(rate_factor(c, 0.3), 1);
  EXPECT_EQ(rate_factor(c, 0.79), 1);
  EXPECT_NEAR(rate_factor(c, 0.9), 0.5, 1e-12);
}

TEST(Schedule, WithoutWarmUpItStartsAtThePeak) { EXPECT_EQ(rate_factor({.kind = Kind::cosine, .warmup = 0}, 0), 1); }

}  // namespace
}  // namespace octet::optim
