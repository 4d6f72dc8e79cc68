#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "octet/telemetry/run_record.hpp"
#include "octet/train/run/small_runs.testing.hpp"
#include "tests/testing/saved_state.hpp"

// Whole runs on ranks that are threads, against the run of one rank with the same sequences per step.

namespace octet::train {
namespace {
namespace fs = std::filesystem;
using octet::testing::error_of, octet::testing::has, octet::testing::SavedState;
using testing::Runs;

constexpr std::int64_t sequences = 12;  // of a step, on any number of ranks

// Text from which a model learns.
std::vector<std::string> counting_texts() {
  std::vector<std::string> texts;
  for (int i = 0; i < 40; ++i) {
    texts.emplace_back();
    for (int k = 0; k < 30; ++k) texts.back() += format("document {} counts to {}\n", i, k * k);
  }
  return texts;
}

struct RankRuns : Runs {
  RankRuns(const std::string& recipe, std::int64_t steps) : Runs(recipe) {
    config.data.path = data::make_dataset(learnable, counting_texts());
    config.train.steps = steps, config.train.eval_every = 0, config.checkpoint.every = 0;
    config.train.save_weights = config.telemetry.tensorboard = false;
  }
  std::string twin(int number) const {
    const Corpus corpus(config.data, config.train, config.model.shape().vocabulary);
    return Trainer(config, corpus, {.console = Console::Kind::quiet, .twin = number}).run().folder;
  }
  octet::testing::Scratch learnable;
  // The same sequences per step on any number of ranks.
  RankRuns& split_for(int ranks) {
    config.train.batch = 1, config.train.accumulate = sequences / ranks;
    return *this;
  }
};

std::vector<double> losses_of(const std::string& folder) {
  std::vector<double> out;
  for (const telemetry::StepEvent& e : telemetry::read_run(folder).steps) out.push_back(e.loss);
  return out;
}

double largest_distance(const std::vector<double>& a, const std::vector<double>& b) {
  EXPECT_EQ(a.size(), b.size());
  double most = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) most = std::max(most, std::fabs(a[i] - b[i]) / std::fabs(a[i]));
  return most;
}

double mean_distance(const std::vector<double>& a, const std::vector<double>& b) {
  EXPECT_EQ(a.size(), b.size());
  double sum = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) sum += std::fabs(a[i] - b[i]) / std::fabs(a[i]);
  return sum / double(a.size());
}

TEST(RunOnRanks, HasTheLossesOfOneRankThroughAHundredSteps) {
  RankRuns runs("fp32", 100);
  runs.config.recipe.head = scaling::HeadPrecision::recipe;
  const std::vector<double> one = losses_of(runs.split_for(1).train_on(1).folder);
  ASSERT_EQ(one.size(), 100u);
  EXPECT_LT(one.back(), 0.5 * one.front()) << "it learns";
  for (const int ranks : {2, 3, 4})
    EXPECT_LE(largest_distance(one, losses_of(runs.split_for(ranks).train_on(ranks).folder)), 1e-5) << ranks << " ranks";
}

class RecipeRunOnRanks : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(RunOnRanks, RecipeRunOnRanks,
                         ::testing::Values("bf16", "fp16", "delayed", "current", "rowwise", "block128", "mxfp8", "global"));

// A twin begins with weights that differ in their last bit. Ranks change the last bits of sums only. Where scales of past maxima begin from
// passes before the first step, ranks have also seen more text in them.
TEST_P(RecipeRunOnRanks, IsAsNearToOneRankAsATwin) {
  RankRuns runs(GetParam(), 20);
  const std::vector<double> one = losses_of(runs.split_for(1).train_on(1).folder);
  const std::vector<double> twin = losses_of(runs.split_for(1).twin(1));
  const std::vector<double> three = losses_of(runs.split_for(3).train_on(3).folder);
  EXPECT_LE(mean_distance(one, three), (GetParam() == "delayed" ? 10 : 3) * mean_distance(one, twin));
}

// States of ranks right after they have resumed.
std::vector<SavedState> resumed_states(const RankRuns& runs, int ranks, const std::string& folder) {
  std::vector<SavedState> states;
  states.resize(std::size_t(ranks));
  runs.train_on(ranks, folder, [&](int rank, Trainer& t) { states[std::size_t(rank)] = SavedState::of(t.engine()); });
  return states;
}

class ResumedOnRanks : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(RunOnRanks, ResumedOnRanks, ::testing::Values("fp32", "delayed", "mxfp8"));

// Other samples would change a loss by some percent.
TEST_P(ResumedOnRanks, HasTheStateOfItsCheckpointAndTheSamplesOfTheRunThatNeverStopped) {
  RankRuns runs(GetParam(), 10);
  runs.config.checkpoint.every = 5;
  const std::string whole = runs.split_for(2).train_on(2).folder;
  std::vector<SavedState> states;
  for (const int ranks : {2, 1, 3, 4}) {
    const std::string cut = runs.copy_of(whole, format("cut-{}", ranks));
    fs::remove_all(CheckpointStore(checkpoint_folder(cut)).path(10));
    for (SavedState& s : resumed_states(runs.split_for(ranks), ranks, cut)) states.push_back(std::move(s));
    const double distance = largest_distance(losses_of(whole), losses_of(cut));
    EXPECT_LE(distance, ranks == 2 ? 0 : GetParam() == "fp32" ? 1e-5 : 1e-3) << ranks << " ranks";
    if (ranks == 2)
      testing::expect_same_state(CheckpointStore(checkpoint_folder(whole)).path(10), CheckpointStore(checkpoint_folder(cut)).path(10));
  }
  for (const SavedState& s : states) EXPECT_EQ(s, states[0]);
}

TEST(ResumeOnRanks, OfAnotherStepIsRefusedWithValuesThatFit) {
  RankRuns runs("bf16", 2);
  const std::string folder = runs.split_for(2).train_on(2).folder;  // 12 sequences
  const auto refusal = [&](int ranks, std::int64_t batch, std::int64_t accumulate) {
    runs.config.train.batch = batch, runs.config.train.accumulate = accumulate;
    return error_of<ConfigError>([&] { runs.train_on(ranks, folder); });
  };
  EXPECT_TRUE(has(refusal(1, 1, 6),
                  "ranks.data = 1 (it was 2): a resumed run keeps its 12 sequences per step, and 1 ranks x train.batch = 1 "
                  "x train.accumulate = 6 are 6; set train.accumulate = 12"));
  EXPECT_TRUE(has(refusal(4, 2, 6), "are 48; set train.batch = 1 and train.accumulate = 3"));
  EXPECT_TRUE(has(refusal(5, 1, 2), "12 sequences need 1, 2, 3, 4, 6, 12 ranks"));
  EXPECT_TRUE(has(refusal(2, 2, 3), "a resumed run cannot change train.batch = 2 (it was 1), train.accumulate = 3 (it was 6)"));
  EXPECT_EQ(refusal(3, 2, 2), "no error") << "another split of the same step";
}

}  // namespace
}  // namespace octet::train
