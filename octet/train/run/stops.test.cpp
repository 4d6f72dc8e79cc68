#include "octet/train/run/ranks/stop.hpp"
#include "octet/train/run/small_runs.testing.hpp"

// A hook that stops its run, and requests of the process that are withdrawn for its next run.

namespace octet::train {
namespace {

struct StopAfter final : StepHook {
  explicit StopAfter(std::int64_t step) : step(step) {}
  bool changes_weights() const override { return false; }
  bool stops_after(const telemetry::StepEvent& event) override {
    losses.push_back(event.loss);
    return event.step == step;
  }
  std::int64_t step;
  std::vector<double> losses;
};

Outcome train(const RunConfig& config, StepHook& hook, const std::string& resume = "") {
  const Corpus corpus(config.data, config.train, config.model.shape().vocabulary);
  return Trainer(config, corpus, {.console = Console::Kind::quiet, .resume = resume, .hook = &hook}).run();
}

TEST(StepHook, StopsARunThatResumesWithTheSameBits) {
  const testing::Runs runs("current");
  const Outcome whole = runs.train();
  StopAfter first(4), second(0);
  const Outcome stopped = train(runs.config, first);
  EXPECT_EQ(stopped.state, telemetry::RunState::stopped);
  EXPECT_EQ(stopped.end.step, 4);
  EXPECT_EQ(first.losses.size(), 4u);
  const Outcome resumed = train(runs.config, second, stopped.folder);
  EXPECT_EQ(resumed.state, telemetry::RunState::finished);
  EXPECT_EQ(second.losses.size(), 5u);
  EXPECT_EQ(resumed.end.eval_loss, whole.end.eval_loss);
}

TEST(StepHook, OfOneRankStopsAllOfThem) {
  const testing::Runs runs;
  Outcome outcome;
  comm::run_on_threads({.ranks = 2, .limit_seconds = 60}, [&](comm::Communicator& c) {
    StopAfter hook(c.rank() == 0 ? 3 : 0);
    const Corpus corpus(runs.config.data, runs.config.train, runs.config.model.shape().vocabulary);
    Trainer trainer(runs.config, corpus,
                    {.console = Console::Kind::quiet, .ranks = &c, .ranks_here = 2, .backend = "threads", .hook = &hook});
    const Outcome own = trainer.run();
    if (c.rank() == 0) outcome = own;
  });
  EXPECT_EQ(outcome.state, telemetry::RunState::stopped);
  EXPECT_EQ(outcome.end.step, 4);
}

TEST(Stop, IsWithdrawnForTheNextRun) {
  const testing::Runs runs;
  request_stop(), request_save();
  EXPECT_EQ(runs.train().state, telemetry::RunState::stopped);
  request_stop(), request_save();
  withdraw_requests();
  EXPECT_FALSE(stop_requested() || take_save_request());
  EXPECT_EQ(runs.train().state, telemetry::RunState::finished);
}

}  // namespace
}  // namespace octet::train
