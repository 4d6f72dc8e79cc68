#include <gtest/gtest.h>

#include "octet/telemetry/run_record.hpp"
#include "tests/testing/octet.hpp"
#include "tests/testing/scratch.hpp"

// Alerts of the program as a user runs it. Injected faults and false alarms: tests/faults.

namespace octet {
namespace {
using testing::Ended, testing::has, testing::run_octet, testing::Scratch;

TEST(Alerts, AreShownOnTheTerminalWithTheirRemedy) {
  const Scratch scratch;
  testing::write_dataset(scratch);
  scratch.write("wild.toml",
                testing::tiny_config("steps = 120\nbatch = 2\neval_every = 0\nsave_weights = false\n"
                                     "[optim]\nlearning_rate = 0.1\nmax_grad_norm = 1000.0\n[optim.schedule]\nwarmup = 0.9\n"));
  const Ended ended = run_octet("train wild.toml --fp8 current --name r", scratch.folder());
  ASSERT_EQ(ended.code, 0) << ended.err;
  const telemetry::RunRecord run = telemetry::read_run(scratch.at("runs/r"));
  ASSERT_FALSE(run.alerts.empty());
  for (const telemetry::AlertEvent& a : run.alerts) {
    if (a.rule == "nonfinite") continue;
    const std::string note = "step " + std::to_string(a.step) + "  " + std::string(name(a.severity)) + " " + a.rule + ": ";
    EXPECT_TRUE(has(ended.err, note) && has(ended.err, a.remedy)) << note << "\n" << ended.err;
  }
}

}  // namespace
}  // namespace octet
