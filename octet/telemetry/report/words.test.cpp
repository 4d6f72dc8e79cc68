#include "octet/telemetry/report/words.hpp"

#include <gtest/gtest.h>

namespace octet::telemetry::report {
namespace {

TEST(Words, ThePeakRateHasThreeDigitsAndADashWithoutSteps) {
  RunRecord run;
  EXPECT_EQ(peak_rate_text(run), "–");
  for (const double rate : {2.5e-4, 9.99624e-4, 0.0}) {
    run.steps.emplace_back();
    run.steps.back().learning_rate = rate;
  }
  EXPECT_EQ(peak_rate_text(run), "0.001");
  run.steps.back().learning_rate = 3.1e-3;
  EXPECT_EQ(peak_rate_text(run), "0.0031");
}

}  // namespace
}  // namespace octet::telemetry::report
