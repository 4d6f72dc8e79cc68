#include <gtest/gtest.h>

#include <fstream>

#include "octet/health/monitor.hpp"
#include "octet/nn/host_values.hpp"
#include "octet/telemetry/event_line.hpp"
#include "octet/telemetry/run_record.hpp"
#include "octet/train/run/small_runs.testing.hpp"

// Alerts of real runs: they are in the record, follow from it alone, and are the same in a run that was resumed.

namespace octet::train {
namespace {
namespace fs = std::filesystem;
using octet::testing::bytes_of, octet::testing::has;
using telemetry::AlertEvent;
using testing::Runs;

constexpr std::int64_t calm_steps = 80;

// A healthy run; resumed with 30 times its learning rate it fails.
struct Calm : Runs {
  Calm() : Runs("current") {
    config.train.steps = calm_steps, config.train.accumulate = 1, config.train.eval_every = 0;
    config.optim.learning_rate = 2e-3, config.optim.schedule.kind = optim::ScheduleConfig::Kind::constant;
    config.checkpoint.every = 0;
  }
  std::string resume_wildly(const std::string& folder) {
    config.optim.learning_rate = 0.06, config.train.steps = calm_steps + 40;
    return train(folder).folder;
  }
};

std::vector<std::string> alert_lines(const std::string& folder) {
  std::vector<std::string> out;
  for (const std::string& line : octet::testing::untimed_events(folder))
    if (has(line, "\"event\":\"alert\"")) out.push_back(line);
  return out;
}

TEST(RunAlerts, FireWithinTenStepsOfThirtyTimesTheLearningRate) {
  Calm runs;
  const std::string folder = runs.train().folder;
  EXPECT_TRUE(alert_lines(folder).empty()) << alert_lines(folder).at(0);
  runs.resume_wildly(folder);
  const telemetry::RunRecord run = telemetry::read_run(folder);
  ASSERT_FALSE(run.alerts.empty());
  EXPECT_LE(run.alerts[0].step, calm_steps + 10);
  EXPECT_NE(std::ranges::find(run.alerts, "loss_spike", &AlertEvent::rule), run.alerts.end());
}

TEST(RunAlerts, FollowFromTheRecordAlone) {
  Calm runs;
  const std::string folder = runs.resume_wildly(runs.train().folder);
  const telemetry::RunFacts facts = telemetry::read_run_facts(folder + "/run.json");
  health::Monitor reader(runs.config.alerts, watch_of(runs.config, facts, true).subject);
  std::vector<std::string> read, written;
  std::ifstream lines(folder + "/metrics.jsonl");
  for (std::string line; std::getline(lines, line);) {
    if (has(line, "\"event\":\"alert\"")) written.push_back(line);
    for (const AlertEvent& alert : reader.take(telemetry::parse_event(line, "metrics.jsonl"))) read.push_back(telemetry::event_line(alert));
  }
  EXPECT_FALSE(written.empty());
  EXPECT_EQ(read, written);
}

TEST(RunAlerts, AreTheSameInARunThatWasResumed) {
  Calm runs;
  const std::string whole = runs.train().folder, cut = runs.copy_of(whole, "cut");
  runs.resume_wildly(whole);
  runs.config.checkpoint.every = 85;  // between the first alert and the next ones
  runs.resume_wildly(cut);
  fs::remove_all(CheckpointStore(checkpoint_folder(cut)).path(calm_steps + 40));
  ASSERT_EQ(CheckpointStore(checkpoint_folder(cut)).steps().back(), 85);
  runs.resume_wildly(cut);
  EXPECT_FALSE(alert_lines(whole).empty());
  EXPECT_EQ(alert_lines(whole), alert_lines(cut));
  testing::expect_same_state(CheckpointStore(checkpoint_folder(whole)).path(calm_steps + 40),
                             CheckpointStore(checkpoint_folder(cut)).path(calm_steps + 40));
}

TEST(RunAlerts, ReachTheProgramWithTheNameOfTheRun) {
  Calm runs;
  runs.config.alerts.command = {"sh", "-c", "while read -r line; do printf '%s\\n' \"$line\" >> \"$1\"; done", "sh",
                                runs.scratch.at("got")};
  const telemetry::RunRecord run = telemetry::read_run(runs.resume_wildly(runs.train().folder));
  const std::string got = bytes_of(runs.scratch.at("got"));
  EXPECT_EQ(std::size_t(std::count(got.begin(), got.end(), '\n')), run.alerts.size()) << got;
  EXPECT_TRUE(has(got, "\"event\":\"alert\"") && has(got, "\"run\":\"" + run.facts.name + "\"")) << got;
  EXPECT_TRUE(has(got, "\"rule\":\"" + run.alerts.at(0).rule + "\"")) << got;
}

TEST(RunAlerts, CanBeDisabledAndEnabledInAResumedRun) {
  Calm runs;
  runs.config.alerts.enabled = false;
  const std::string folder = runs.resume_wildly(runs.train().folder);
  EXPECT_TRUE(telemetry::read_run(folder).alerts.empty());
  runs.config.alerts.enabled = true, runs.config.train.steps += 10;
  EXPECT_EQ(runs.train(folder).end.step, calm_steps + 50);
}

TEST(RunAlerts, AreDecidedByTheFirstOfSeveralRanks) {
  Calm runs;
  const std::string folder = runs.train_on(2).folder;
  runs.config.optim.learning_rate = 0.09, runs.config.train.steps = calm_steps + 40;
  runs.train_on(2, folder);
  const std::vector<std::string> alerts = alert_lines(folder);
  ASSERT_FALSE(alerts.empty());
  EXPECT_EQ(std::ranges::count(alerts, alerts[0]), 1) << "one rank writes";
}

TEST(RunAlerts, OfTheWeightsThatAreNotFiniteNameTheTensor) {
  Runs runs("bf16");
  runs.config.train.max_skipped = 2;
  const Corpus corpus(runs.config.data, runs.config.train, runs.config.model.shape().vocabulary);
  Trainer trainer(runs.config, corpus, {.console = Console::Kind::quiet});
  const std::string folder = trainer.folder();
  Engine& e = trainer.engine();
  std::vector<float> values = nn::flat_values(e.stream, {e.parameters.list().at(3)->value});
  values[5] = NAN;
  e.parameters.set_values(e.stream, 3, values.data());
  EXPECT_THROW(trainer.run(), DivergedError);
  const telemetry::RunRecord run = telemetry::read_run(folder);
  const auto found = std::ranges::find(run.alerts, "nonfinite", &AlertEvent::rule);
  ASSERT_NE(found, run.alerts.end());
  EXPECT_EQ(found->step, 1);
  EXPECT_EQ(found->path, e.parameters.list().at(3)->path);
}

}  // namespace
}  // namespace octet::train
