#include "octet/telemetry/step_line.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace octet::telemetry {
namespace {

StepEvent step() {
  return {.step = 120,
          .loss = 2.3456,
          .loss_z = 0.3,
          .grad_norm = 0.812,
          .grad_norm_z = -0.1,
          .learning_rate = 3e-4,
          .tokens_per_second = 3412,
          .limit_share = 0.61};
}

std::size_t columns_of(const std::string& s) {
  return std::size_t(std::count_if(s.begin(), s.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

TEST(StepLine, SaysWhatAPersonWantsToKnow) {
  EXPECT_EQ(format_step_line(step(), {.steps = 500, .eta_seconds = 112}),
            "step 120/500  loss 2.3456 (+0.3z)  grad 0.8120 (-0.1z)  lr 3.00e-04  3,412 tok/s  61% of limit  eta 1m52s");
}

TEST(StepLine, LeavesOutWhatIsNotKnown) {
  StepEvent e = step();
  e.loss_z = e.grad_norm_z = NAN, e.tokens_per_second = 0, e.limit_share = NAN;
  EXPECT_EQ(format_step_line(e, {}), "step 120  loss 2.3456  grad 0.8120  lr 3.00e-04");
}

TEST(StepLine, ASkippedStepSaysSo) {
  StepEvent e = step();
  e.loss = NAN, e.skipped = true;
  EXPECT_NE(format_step_line(e, {}).find("SKIPPED  loss not finite"), std::string::npos);
}

TEST(StepLine, AProgressLineFitsAnyTerminal) {
  for (int columns = 0; columns < 200; ++columns) {
    const std::string line = format_progress_line(step(), {.steps = 500, .eta_seconds = 112, .fraction_done = 0.24}, columns);
    EXPECT_LE(columns_of(line), std::size_t(columns));
  }
  EXPECT_EQ(format_progress_line(step(), {.steps = 500, .fraction_done = 0.45}, 26), "▕████▌     ▏  step 120/500");
}

TEST(StepLine, AProgressLineOnAUsualTerminalHasABarTheLossTheSpeedAndTheTimeLeft) {
  EXPECT_EQ(format_progress_line(step(), {.steps = 500, .eta_seconds = 112, .fraction_done = 0.24}, 79),
            "▕████▍             ▏  step 120/500  loss 2.3456 (+0.3z)  3,412 tok/s  eta 1m52s");
  EXPECT_EQ(format_progress_line(step(), {.steps = 500, .eta_seconds = 112, .fraction_done = 0.24}, 60),
            "▕██▉         ▏  step 120/500  loss 2.3456 (+0.3z)  eta 1m52s");
}

TEST(StepLine, TheEndOfARunHasOnlyFiguresThatThereAre) {
  EndEvent e{.step = 150, .reason = "all steps done", .train_loss = 2.84321, .eval_loss = 2.965, .tokens_per_second = 1823.4};
  EXPECT_EQ(format_end_line(e), "all steps done: 150 steps, train loss 2.8432, eval loss 2.9650, 1,823 tok/s, 0 skipped");
  e.eval_loss = NAN;
  EXPECT_EQ(format_end_line(e), "all steps done: 150 steps, train loss 2.8432, 1,823 tok/s, 0 skipped");
  e = {.step = 0, .reason = "stopped by a signal", .train_loss = NAN, .eval_loss = NAN, .tokens_per_second = NAN, .skipped = 3};
  EXPECT_EQ(format_end_line(e), "stopped by a signal: 0 steps, 3 skipped");
}

TEST(StepLine, DurationsHaveTwoUnitsAtMost) {
  EXPECT_EQ(duration_text(52.4), "52s");
  EXPECT_EQ(duration_text(112), "1m52s");
  EXPECT_EQ(duration_text(7500), "2h05m");
  EXPECT_EQ(duration_text(273600), "3d04h");
  EXPECT_EQ(duration_text(NAN), "?");
}

}  // namespace
}  // namespace octet::telemetry
