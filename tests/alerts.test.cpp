#include <gtest/gtest.h>

#include <array>
#include <cstdlib>

#include "octet/telemetry/event_line.hpp"
#include "octet/telemetry/run_record.hpp"
#include "tests/testing/octet.hpp"
#include "tests/testing/scratch.hpp"

// Alerts of the program as a user runs it. False alarms are counted by a campaign: OCTET_ALERT_RUNS=20 trains as many healthy runs of the
// model of scripts/demo, of OCTET_ALERT_STEPS (150) steps each, with all recipes in turn.

namespace octet {
namespace {
using testing::Ended, testing::has, testing::run_octet, testing::Scratch;

std::int64_t number_of(const char* variable, std::int64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoll(text, nullptr, 10);
}

void make_headers(const Scratch& scratch) {
  const Ended made =
      run_octet("tokenize --input /usr/include/**/*.h --input /usr/include/c++/** --max-mb 8 --output data/headers", scratch.folder());
  ASSERT_EQ(made.code, 0) << made.err;
}

std::string demo_run(const std::string& recipe, std::int64_t seed, const std::string& more) {
  return "train " OCTET_SOURCE_DIR "/examples/demo.toml --quiet --set recipe.name=" + recipe + " --set seed=" + std::to_string(seed) +
         " --name r --set train.save_weights=false " + more;
}

TEST(Alerts, OfHealthyRunsAreAtMostOne) {
  const std::int64_t runs = number_of("OCTET_ALERT_RUNS", 0), steps = number_of("OCTET_ALERT_STEPS", 150);
  if (runs == 0) GTEST_SKIP() << "a campaign: set OCTET_ALERT_RUNS to the number of runs";
  constexpr std::array recipes{"bf16", "delayed", "current", "rowwise", "block128", "mxfp8"};
  const Scratch scratch;
  make_headers(scratch);
  std::string alarms;
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < runs; ++i) {
    const std::string recipe = recipes[std::size_t(i) % recipes.size()], output = "runs" + std::to_string(i);
    const std::int64_t seed = 1 + i / std::int64_t(recipes.size());
    const Ended ended = run_octet(demo_run(recipe, seed, "--steps " + std::to_string(steps) + " --set output=" + output), scratch.folder());
    ASSERT_EQ(ended.code, 0) << ended.err;
    for (const telemetry::AlertEvent& a : telemetry::read_run(scratch.at(output + "/r")).alerts) {
      alarms += recipe + ": " + telemetry::event_line(a) + "\n";
      count += a.severity != telemetry::Severity::info;
    }
  }
  std::printf("%lld alerts of severity warning or higher in %lld runs of %lld steps\n%s", (long long)count, (long long)runs,
              (long long)steps, alarms.c_str());
  EXPECT_LE(count, 1) << alarms;
}

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
