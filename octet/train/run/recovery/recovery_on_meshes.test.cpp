#include <gtest/gtest.h>

#include <array>

#include "octet/train/run/recovery/recovery.testing.hpp"

// Recovery on ranks that are stages of a pipeline, that have parts of sequences, and both.

namespace octet::train {
namespace {

using namespace octet::train::testing;
using octet::testing::error_of, octet::testing::has, octet::testing::untimed_events;
using telemetry::RecoveryEvent;

struct Mesh {
  std::int64_t context = 1, pipeline = 1;
  int all() const { return int(context * pipeline); }
};

// The orders that a rank's trainer follows, and whether the step before was skipped on its device.
struct Told final : StepHook {
  std::vector<std::array<double, 5>> steps;
  void before(const StepInputs& i) override {
    const float skipped = read<float>(i.engine.stream, i.engine.optimizer->skip());
    steps.push_back({double(i.step), i.options.learning_rate, i.options.limits.loss, i.options.limits.gradient_norm, skipped});
  }
};

struct OnRanks {
  Outcome first;
  std::vector<Told> told;
  std::vector<std::string> ends;  // the error of each rank that says why it diverged
};

bool nothing(const std::string&, std::vector<float>&) { return false; }

// Every rank follows the orders of rank 0, which alone has the record.
OnRanks run_on(const Mesh& mesh, RunConfig config, const std::string& resume = "",
               bool (*damage)(const std::string&, std::vector<float>&) = nothing) {
  config.ranks.context = mesh.context, config.ranks.pipeline = mesh.pipeline, config.model.layers = 2;
  OnRanks out{.first = {}, .told = std::vector<Told>(std::size_t(mesh.all())), .ends = std::vector<std::string>(std::size_t(mesh.all()))};
  comm::run_on_threads({.ranks = mesh.all(), .limit_seconds = 60}, [&](comm::Communicator& c) {
    const auto rank = std::size_t(c.rank());
    const Corpus corpus(config.data, config.train, config.model.shape().vocabulary);
    Trainer trainer(config, corpus,
                    {.console = Console::Kind::quiet, .resume = resume, .ranks = &c, .ranks_here = mesh.all(), .hook = &out.told[rank]});
    change_weights(trainer.engine(), damage);
    out.ends[rank] = error_of<DivergedError>([&] {
      Outcome outcome = trainer.run();
      if (rank == 0) out.first = std::move(outcome);
    });
  });
  for (const Told& t : out.told) EXPECT_EQ(t.steps, out.told[0].steps);
  return out;
}

class RecoveryOnMesh : public ::testing::TestWithParam<Mesh> {
 protected:
  // A copy that ends with the checkpoint of `step` resumes with the lines of the whole run.
  void expect_resumes(const Runs& runs, const std::string& whole, std::int64_t step) const {
    const std::string cut = runs.copy_of(whole, format("cut-{}", step));
    CheckpointStore(checkpoint_folder(cut)).forget_after(step);
    run_on(GetParam(), runs.config, cut);
    EXPECT_EQ(untimed_events(whole), untimed_events(cut)) << step;
    const std::int64_t last = runs.config.train.steps;
    expect_same_state(CheckpointStore(checkpoint_folder(whole)).path(last), CheckpointStore(checkpoint_folder(cut)).path(last));
  }
};
INSTANTIATE_TEST_SUITE_P(Meshes, RecoveryOnMesh, ::testing::Values(Mesh{.pipeline = 2}, Mesh{.context = 2}, Mesh{2, 2}),
                         [](const auto& info) { return format("Context{}Pipeline{}", info.param.context, info.param.pipeline); });

TEST_P(RecoveryOnMesh, SkipsLowersTheRateAndGoesBackAndResumesWithinEach) {
  const SeveralRungs runs;
  const OnRanks run = run_on(GetParam(), runs.config);
  const std::string whole = run.first.folder;
  EXPECT_EQ(run.first.state, telemetry::RunState::finished);
  EXPECT_EQ(recoveries(whole, "skip", "done").size(), 1u);
  const std::vector<RecoveryEvent> rate = recoveries(whole, "rate", "done"), back = recoveries(whole, "roll_back", "done");
  ASSERT_EQ(rate.size(), 1u);
  ASSERT_FALSE(back.empty());
  expect_resumes(runs, whole, rate[0].step / 10 * 10 + 10);
  expect_resumes(runs, whole, back[0].back_to);
}

// Of the second block, which rank 0 of a pipeline does not have.
TEST_P(RecoveryOnMesh, TakesTheLayersOfAnAlertToBf16AndBack) {
  Clipped runs;
  runs.config.recipe.first = 1, runs.config.train.steps = 60;
  const std::string whole = run_on(GetParam(), runs.config).first.folder;
  const std::vector<RecoveryEvent> done = recoveries(whole, "layers", "done"), ended = recoveries(whole, "layers", "ended");
  ASSERT_EQ(done.size(), 1u);
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_TRUE(done[0].layers.at(0).starts_with("layers.1.")) << done[0].layers[0];
  EXPECT_TRUE(has(done[0].text, "-> bf16") && has(ended[0].text, ": bf16 -> ")) << done[0].text << ended[0].text;
  expect_resumes(runs, whole, done[0].step / 10 * 10 + 10);
}

// Damage on the rank that has the embedding is an incident of all. The checkpoint is that of another mesh.
TEST_P(RecoveryOnMesh, ReturnsToTheCheckpointBeforeDamageOrStopsOnEveryRank) {
  Damaged runs;
  runs.config.train.steps = 20;
  const Mesh before{.context = GetParam().pipeline, .pipeline = GetParam().context};
  const std::string folder = run_on(before, runs.config).first.folder, stopped = runs.copy_of(folder, "stopped");
  runs.config.train.steps = 40, runs.config.recovery.roll_back.before = 0;
  EXPECT_EQ(run_on(GetParam(), runs.config, folder, poison).first.state, telemetry::RunState::finished);
  const std::vector<RecoveryEvent> back = recoveries(folder, "roll_back", "done");
  ASSERT_EQ(back.size(), 1u);
  EXPECT_EQ(back[0].back_to, 20);
  EXPECT_TRUE(back[0].rule == "nonfinite" && back[0].path == "embedding.weight") << back[0].path;
  EXPECT_FALSE(telemetry::read_run(folder).steps.back().skipped);
  runs.config.recovery.roll_back.most = 0;
  for (const std::string& end : run_on(GetParam(), runs.config, stopped, poison).ends)
    EXPECT_TRUE(has(end, "recovery stopped it after step 2") && has(end, "nonfinite in embedding.weight")) << end;
  EXPECT_EQ(CheckpointStore(checkpoint_folder(stopped)).steps().back(), 20) << "the last state is not saved";
}

}  // namespace
}  // namespace octet::train
