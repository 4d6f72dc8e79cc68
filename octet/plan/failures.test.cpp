#include <gtest/gtest.h>

#include <cmath>

#include "octet/plan/failures.hpp"

namespace octet::plan {
namespace {

Job job_of(std::int64_t gpus) { return {.sequence = 8192, .sequences = 2048, .gpus = gpus}; }
StepTime step_of(double seconds) { return {.gemms = seconds}; }

// Share of time lost per interval t, by the definition: a checkpoint of d per interval, and per failure half of both and a restart of r.
double lost(double t, double d, double r, double m) { return (1 + d / t) / (1 - ((t + d) / 2 + r) / m) - 1; }

TEST(Failures, TheIntervalIsTheBestOfAllNearIt) {
  for (const double d : {1.0, 10.0, 120.0})
    for (const std::int64_t gpus : {8, 1024, 16384}) {
      const Failures f{.checkpoint_seconds = d, .restart_minutes = 0};
      const Training t = training_of(1e12, step_of(4), job_of(gpus), f);
      const double m = f.mtbf_hours * 3600 / double(gpus), here = lost(t.seconds_between_checkpoints, d, 0, m);
      EXPECT_NEAR(1 / t.goodput() - 1, here, 1e-9);
      for (const double factor : {0.7, 1.4}) EXPECT_LE(here, lost(t.seconds_between_checkpoints * factor, d, 0, m)) << d << " " << gpus;
    }
}

// Grattafiori et al. 2024: 16,384 GPUs trained for more than 90% of the time.
TEST(Failures, GoodputOfLlama3IsWhatWasPublished) {
  const Training t = training_of(3.8e12, step_of(5), job_of(16384), {});
  EXPECT_NEAR(t.seconds_between_failures / 3600, 54.0 * 24 / 419, 0.1);
  EXPECT_GT(t.goodput(), 0.9);
  EXPECT_LT(t.goodput(), 0.96);
}

TEST(Failures, DaysHoursAndSparesFollowFromTheRate) {
  const Failures never{.mtbf_hours = 1e12, .checkpoint_seconds = 1e-6};
  const Job job = job_of(64);
  const Training t = training_of(job.tokens() * 1000, step_of(86.4), job, never);  // a day
  EXPECT_NEAR(t.days, 1, 1e-6);
  EXPECT_NEAR(t.gpu_hours, 64 * 24, 1e-3);
  EXPECT_EQ(t.spare_nodes, 0);
  // One failure per day and a day of repair: P(N <= 4) = 0.9963, P(N <= 3) = 0.981.
  EXPECT_EQ(training_of(1e9, step_of(4), job_of(1000), {.mtbf_hours = 24'000}).spare_nodes, 4);
  EXPECT_NE(training_text(1e9, t, job, never, 2).find("3,072 at 2 per GPU hour"), std::string::npos);
}

TEST(Failures, ARestartLongerThanTheTimeBetweenFailuresIsSaid) {
  const Failures f{.mtbf_hours = 100, .restart_minutes = 60};
  const Training t = training_of(1e12, step_of(4), job_of(1024), f);
  EXPECT_NE(training_text(1e12, t, job_of(1024), f, 0).find("no step is kept"), std::string::npos);
}

}  // namespace
}  // namespace octet::plan
