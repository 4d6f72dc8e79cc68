#include <gtest/gtest.h>

#include "octet/data/pairs.testing.hpp"
#include "octet/telemetry/run_record.hpp"
#include "octet/train/run/small_runs.testing.hpp"

// Runs that learn from pairs of answers.

namespace octet::train {
namespace {

namespace fs = std::filesystem;
using octet::testing::error_of, octet::testing::has;
using testing::Runs;

struct PreferenceRuns : Runs {
  explicit PreferenceRuns(const std::string& recipe = "bf16") : Runs(recipe) {
    config.data.path = data::write_pairs(scratch.at("pairs"), data::random_pairs(60, 256, 5));
    config.data.document_mask = true, config.dpo.beta = 0.2, config.train.steps = 6;
  }
};

TEST(PreferenceRun, ResumesBitForBitAndItsMemoryIsThatOfItsDryRun) {
  for (const auto& [recipe, adapters] : {std::pair("bf16", false), {"delayed", true}}) {
    PreferenceRuns runs(recipe);
    if (adapters) {
      runs.config.train.steps = 2, runs.config.name = "base";
      runs.config.model.init = runs.train().folder + "/weights";
      runs.config.train.steps = 6, runs.config.name = "", runs.config.lora.rank = 4;
    }
    const Corpus corpus(runs.config.data, runs.config.train, runs.config.model.shape().vocabulary);
    EXPECT_EQ(corpus.pairs(), 60);
    Trainer trainer(runs.config, corpus, {.console = Console::Kind::quiet});
    const Outcome outcome = trainer.run();
    EXPECT_EQ(outcome.memory.by_category, trainer.plan().memory.by_category) << recipe;
    const std::string whole = outcome.folder, cut = runs.copy_of(whole, "cut");
    fs::remove_all(CheckpointStore(checkpoint_folder(cut)).path(6));
    runs.train(cut);
    testing::expect_same_state(CheckpointStore(checkpoint_folder(whole)).path(6), CheckpointStore(checkpoint_folder(cut)).path(6));
    EXPECT_EQ(testing::without_incidents(whole), testing::without_incidents(cut)) << recipe;
  }
}

TEST(PreferenceRun, RecordsRewardsAndLogProbabilitiesOfStepsAndEvaluations) {
  PreferenceRuns runs;
  runs.config.train.steps = 12, runs.config.optim.learning_rate = 3e-3;
  const telemetry::RunRecord run = telemetry::read_run(runs.train().folder);
  ASSERT_EQ(run.steps.size(), 12u);
  EXPECT_EQ(run.steps[0].loss, double(float(std::log(2.0))));
  EXPECT_EQ(run.steps[0].preferences.margin(), 0);
  EXPECT_LT(run.steps.back().loss, 0.6);
  EXPECT_GT(run.steps.back().preferences.margin(), 0.1);
  EXPECT_LT(run.steps.back().preferences.chosen_log_probability, 0);
  ASSERT_FALSE(run.evals.empty());
  EXPECT_EQ(run.evals.back().tokens, 15) << "pairs";
  EXPECT_GT(run.evals.back().preferences.accuracy, 0.5) << "even ids are chosen, odd ones rejected";
}

TEST(PreferenceRun, OfSeveralRanksIsThatOfOne) {
  PreferenceRuns runs("fp32");
  const auto losses = [](const std::string& folder) {
    std::vector<double> out;
    const telemetry::RunRecord run = telemetry::read_run(folder);
    for (const telemetry::StepEvent& e : run.steps) out.push_back(e.loss);
    for (const telemetry::EvalEvent& e : run.evals) out.push_back(e.loss);
    return out;
  };
  const std::vector<double> one = losses(runs.train().folder);
  runs.config.ranks.data = 2, runs.config.train.accumulate = 1;
  const std::string folder = runs.train_on(2).folder;
  const std::vector<double> two = losses(folder);
  ASSERT_EQ(one.size(), two.size());
  for (std::size_t i = 0; i < one.size(); ++i) EXPECT_NEAR(two[i], one[i], 1e-5) << i;
  const std::string cut = runs.copy_of(folder, "cut");
  fs::remove_all(CheckpointStore(checkpoint_folder(cut)).path(6));
  runs.train_on(2, cut);
  testing::expect_same_state(CheckpointStore(checkpoint_folder(folder)).path(6), CheckpointStore(checkpoint_folder(cut)).path(6));
}

TEST(PreferenceRun, RefusesOtherPairsOnResumeAndTextsThatAreNoPairs) {
  PreferenceRuns runs;
  const std::string run = runs.train().folder, pairs = runs.config.data.path;
  fs::remove_all(CheckpointStore(checkpoint_folder(run)).path(6));
  runs.config.data.eval_path = data::write_pairs(runs.scratch.at("other"), data::random_pairs(20, 256, 9));
  EXPECT_TRUE(has(error_of<DataError>([&] { runs.train(run); }), "the run has reference log-probabilities of other pairs than data.path"));
  runs.config.data.eval_path = runs.scratch.at("data");
  EXPECT_TRUE(has(error_of<ConfigError>([&] { runs.train(); }), "has text, and data.path"));
  runs.config.data.eval_path = "", runs.config.data.path = runs.scratch.at("data");
  EXPECT_TRUE(has(error_of<ConfigError>([&] { runs.train(); }), "dpo.beta = 0.2 learns from pairs of answers, and data.path"));
  runs.config.data.path = pairs, runs.config.dpo.beta = 0;
  EXPECT_TRUE(has(error_of<ConfigError>([&] { runs.train(); }), "has pairs of answers; set dpo.beta, such as 0.1"));
  runs.config.dpo.beta = 0.2, runs.config.data.document_mask = false;
  EXPECT_TRUE(has(error_of<ConfigError>([&] { runs.train(); }), "set data.document_mask = true"));
  runs.config.data.document_mask = true, runs.config.data.sequence_length = 3;
  EXPECT_TRUE(has(error_of<ConfigError>([&] { runs.train(); }), "pairs of the training part of"));
}

}  // namespace
}  // namespace octet::train
