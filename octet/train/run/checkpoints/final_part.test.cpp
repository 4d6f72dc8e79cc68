#include "octet/train/run/config/final_part.hpp"

#include <cmath>

#include "octet/telemetry/run_record.hpp"
#include "octet/train/run/ranks/stop.hpp"
#include "octet/train/run/small_runs.testing.hpp"

namespace octet::train {
namespace {
namespace fs = std::filesystem;
using octet::testing::error_of, octet::testing::has;
using testing::expect_same_run, testing::Runs;

// Nine steps, the last three of which have another recipe.
struct FinalRuns : Runs {
  FinalRuns(const std::string& recipe, const std::string& last) : Runs(recipe) {
    config.recipe.final_recipe = last, config.recipe.final_share = 1.0 / 3;
    config.checkpoint.every = 1, config.telemetry.tensorboard = false;
  }
  std::string cut_after(const std::string& run, std::int64_t step) const {
    const std::string cut = copy_of(run, format("after-{}", step));
    const CheckpointStore store(checkpoint_folder(cut));
    for (const std::int64_t s : store.steps())
      if (s > step) fs::remove_all(store.path(s));
    return cut;
  }
};

std::vector<double> losses_of(const std::string& folder) {
  std::vector<double> out;
  for (const telemetry::StepEvent& e : telemetry::read_run(folder).steps) out.push_back(e.loss);
  return out;
}

std::vector<std::string> changes_of(const std::string& folder) {
  std::vector<std::string> out;
  for (const telemetry::IncidentEvent& e : telemetry::read_run(folder).incidents)
    if (e.kind == "precision") out.push_back(format("{}: {}", e.step, e.text));
  return out;
}

TEST(FinalPart, HasItsShareOfTheStepsAndAtLeastOne) {
  FinalRuns runs("current", "bf16");
  EXPECT_EQ(steps_before_final_part(runs.config), 6);
  EXPECT_EQ(recipe_of_step(runs.config, 6), "current");
  EXPECT_EQ(recipe_of_step(runs.config, 7), "bf16");
  runs.config.recipe.final_share = 1e-6;
  EXPECT_EQ(steps_before_final_part(runs.config), 8);
  runs.config.recipe.final_share = 1;
  EXPECT_EQ(recipe_of_step(runs.config, 1), "bf16");
  runs.config.recipe.final_recipe = "current";
  EXPECT_EQ(recipe_of_step(runs.config, 1000), "current") << "the same recipe has no final part";
}

TEST(FinalPart, ChangesTheStepsAfterItAlone) {
  const FinalRuns runs("current", "bf16");
  Runs plain("current");
  plain.config.data = runs.config.data;
  const std::string folder = runs.train().folder;
  const std::vector<double> changed = losses_of(folder), same = losses_of(plain.train().folder);
  ASSERT_EQ(changed.size(), 9u);
  for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(changed[i], same[i]) << i;
  EXPECT_NE(changed[6], same[6]);
  EXPECT_EQ(changes_of(folder), std::vector<std::string>{"6: linear layers run in bf16 from step 7 on, as recipe.final says"});
  const auto rows = dry_run(engine_config(runs.config), Target{}, 1, 1).plan;
  EXPECT_TRUE(std::ranges::any_of(rows, [](const scaling::PlanRow& r) { return r.why == "recipe.final = \"bf16\""; }))
      << "the plan names it";
  for (const scaling::PlanRow& row : dry_run(engine_config(runs.config, "bf16"), Target{}, 1, 1).plan)
    EXPECT_FALSE(row.eight_bits) << row.path;
}

TEST(FinalPart, WithBf16InForwardAloneChangesTheStepsAfterIt) {
  const FinalRuns runs("delayed", "bf16_forward");
  FinalRuns plain("delayed", "none"), bf16("delayed", "bf16");
  plain.config.data = bf16.config.data = runs.config.data;
  const std::string folder = runs.train().folder;
  const std::vector<double> changed = losses_of(folder), same = losses_of(plain.train().folder), all = losses_of(bf16.train().folder);
  ASSERT_EQ(changed.size(), 9u);
  for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(changed[i], same[i]) << i;
  EXPECT_NE(changed[6], same[6]);
  EXPECT_EQ(changed[6], all[6]) << "forward of the same weights is that of BF16";
  EXPECT_NE(changed[7], all[7]) << "and backward is not";
  EXPECT_EQ(changes_of(folder), std::vector<std::string>{"6: linear layers run in bf16_forward from step 7 on, as recipe.final says"});
  const auto plan = telemetry::read_run(folder).facts.plan;
  EXPECT_TRUE(std::ranges::any_of(plan, [](const auto& row) { return row.precision == "bf16 in forward, as before in backward"; }))
      << "as the report shows it";
}

class ResumedFinalPart : public ::testing::TestWithParam<std::pair<const char*, const char*>> {};
INSTANTIATE_TEST_SUITE_P(FinalPart, ResumedFinalPart,
                         ::testing::Values(std::pair("delayed", "bf16"), std::pair("current", "delayed"), std::pair("bf16", "block128"),
                                           std::pair("delayed", "bf16_forward"), std::pair("block128", "bf16_forward")));

TEST_P(ResumedFinalPart, IsBitForBitTheRunThatNeverStopped) {
  const FinalRuns runs(GetParam().first, GetParam().second);
  const std::string whole = runs.train().folder;
  for (const std::int64_t step : {5, 6, 7}) {
    const std::string cut = runs.cut_after(whole, step);
    runs.train(cut);
    expect_same_run(whole, cut, 9);
  }
}

// A signal in the middle of step 7, whose engine is the other one already.
struct StopIn7 final : StepHook {
  void before(const StepInputs& in) override {
    if (in.step == 7) request_stop();
  }
  bool changes_weights() const override { return false; }
};

TEST_P(ResumedFinalPart, ContinuesAfterASignalInItsFirstStep) {
  FinalRuns runs(GetParam().first, GetParam().second);
  const std::string whole = runs.train().folder;
  runs.config.checkpoint.every = 4;
  StopIn7 hook;
  const Corpus corpus(runs.config.data, runs.config.train, runs.config.model.shape().vocabulary);
  const Outcome stopped = Trainer(runs.config, corpus, {.console = Console::Kind::quiet, .hook = &hook}).run();
  withdraw_requests();
  EXPECT_EQ(stopped.state, telemetry::RunState::stopped);
  EXPECT_EQ(stopped.end.step, 6);
  runs.train(stopped.folder);
  expect_same_run(whole, stopped.folder, 9);
}

TEST(FinalPart, OfAResumedRunMayBeginElsewhereOrNotAtAll) {
  FinalRuns runs("delayed", "bf16");
  const std::string folder = runs.train().folder;
  runs.config.train.steps = 12, runs.config.recipe.final_share = 1.0 / 12;
  runs.train(folder);
  runs.config.train.steps = 14, runs.config.recipe.final_recipe = "none";
  runs.train(folder);
  EXPECT_EQ(changes_of(folder), (std::vector<std::string>{"6: linear layers run in bf16 from step 7 on, as recipe.final says",
                                                          "9: linear layers run in delayed from step 10 on, as recipe.final says",
                                                          "11: linear layers run in bf16 from step 12 on, as recipe.final says",
                                                          "12: linear layers run in delayed from step 13 on, as recipe.final says"}));
}

// Ranks that divide weights send codes of them before it and values in it, so that their parts are others.
void expect_ranks_like_whole_weights(const char* last) {
  FinalRuns runs("block128", last);
  runs.config.model.width = 128, runs.config.model.hidden = 256, runs.config.train.accumulate = 1;
  std::vector<double> whole;
  for (const std::int64_t zero : {0, 1, 3}) {
    runs.config.ranks.zero = zero;
    const std::string folder = runs.train_on(2).folder;
    EXPECT_EQ(changes_of(folder).size(), 1u);
    const std::vector<double> losses = losses_of(folder);
    ASSERT_EQ(losses.size(), 9u);
    if (zero == 0) whole = losses;
    for (std::size_t i = 0; i < 9; ++i) EXPECT_NEAR(losses[i], whole[i], 1e-3 * whole[i]) << "stage " << zero << ", step " << i + 1;
    const std::string cut = runs.cut_after(folder, 6);
    runs.train_on(2, cut);
    EXPECT_EQ(losses_of(cut), losses) << "stage " << zero;
    fs::remove_all(cut);
  }
}

TEST(FinalPart, OfRanksThatDivideWeightsIsThatOfWholeOnes) {
  for (const char* last : {"bf16", "bf16_forward"}) expect_ranks_like_whole_weights(last);
}

// Ranks read weights in BF16. Their scales come from these values, not from maxima that the recipe before measured on masters, of which
// each rank has a part.
TEST(FinalPart, OfRanksMeasuresWeightsAsItReadsThem) {
  FinalRuns runs("current", "bf16_forward");
  runs.config.model.width = 128, runs.config.model.hidden = 256, runs.config.train.accumulate = 1;
  runs.config.ranks.zero = 1;
  const std::vector<double> stored = losses_of(runs.train_on(2).folder);
  runs.config.recipe.weights = scaling::WeightCodes::on_demand;
  for (const std::int64_t zero : {1, 3}) {
    runs.config.ranks.zero = zero;
    const std::string folder = runs.train_on(2).folder;
    EXPECT_EQ(losses_of(folder), stored) << "stage " << zero;
    const std::string cut = runs.cut_after(folder, 6);
    runs.train_on(2, cut);
    EXPECT_EQ(losses_of(cut), stored) << "stage " << zero << ", resumed";
    fs::remove_all(cut);
  }
}

TEST(FinalPart, IsRefusedWithoutANumberOfStepsOrWithOtherActivations) {
  FinalRuns runs("current", "bf16");
  runs.config.train.steps = 0, runs.config.train.max_seconds = 1;
  EXPECT_TRUE(has(error_of<ConfigError>([&] { runs.train(); }), "set train.steps or train.tokens"));
  FinalRuns other("current", "fp16");
  EXPECT_TRUE(has(error_of<ConfigError>([&] { other.train(); }), "recipe.final = \"fp16\": activations are f16"));
  FinalRuns plain("bf16", "bf16_forward");
  EXPECT_TRUE(has(error_of<ConfigError>([&] { plain.train(); }), "recipe.final = \"bf16_forward\": no linear layer has 8 bits"));
}

}  // namespace
}  // namespace octet::train
