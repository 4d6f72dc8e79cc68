#include <gtest/gtest.h>

#include "octet/base/log.hpp"
#include "octet/data/corpus.testing.hpp"
#include "tests/faults/campaign.hpp"
#include "tests/faults/cost.hpp"
#include "tests/faults/healthy.hpp"

// Faults in runs of a model so small that a step takes milliseconds. The campaign with the model of scripts/demo is octet_faults.

namespace octet::faults {
namespace {

/// Text that a small model learns: words in an order that repeats with changes.
std::vector<std::string> texts() {
  std::vector<std::string> out;
  for (int i = 0; i < 60; ++i) {
    std::string text;
    for (int k = 0; text.size() < 1500; ++k) text += "step " + std::to_string(i * 7 + k) + " of document " + std::to_string(i) + "\n";
    out.push_back(text);
  }
  return out;
}

struct Small {
  testing::Scratch scratch;
  CampaignOptions options;
  Small() {
    log::set_quiet(true);
    train::RunConfig c;
    c.model.layers = 2, c.model.width = 64, c.model.heads = 4, c.model.kv_heads = 2, c.model.hidden = 96;
    c.data.path = data::make_dataset(scratch, texts());
    c.data.sequence_length = 64, c.data.eval_fraction = 0.1;
    c.train.steps = 106, c.train.batch = 4, c.train.eval_every = 0, c.train.eval_tokens = 1024, c.train.health_every = 5;
    c.optim.learning_rate = 1e-2;
    c.output = scratch.at("runs");
    c.alerts.set_threshold("param_norm_growth", 0);  // such a small model grows
    options = {.config = campaign_config(c), .begin = 90, .layer = 1};
  }
  ~Small() { log::set_quiet(false); }
  std::vector<Trial> run() const {
    return run_campaign(options, [](const Trial&) {});
  }
};

std::string described(const Trial& t) {
  return format("{} under {}: {} after {} steps, names {}; loss {}%", t.fault, t.recipe, t.rule, t.delay, t.tensor, 100 * t.off.gap);
}

void expect_detected(const std::vector<Trial>& trials) {
  for (const Trial& t : trials) {
    EXPECT_GE(t.delay, 0) << described(t);
    EXPECT_LE(t.delay, wanted_delay) << described(t);
    EXPECT_NE(t.named, Named::wrong) << described(t);
  }
}

TEST(Faults, OutliersAreDetectedAndNamedUnderRecipesOfEachKind) {
  Small small;
  small.options.faults = {"outlier.x", "outlier.w", "outlier.dy"}, small.options.recipes = {"delayed", "current", "block128"};
  const std::vector<Trial> all = small.run();
  ASSERT_EQ(all.size(), 9);
  expect_detected(all);
  for (const Trial& t : all) EXPECT_EQ(t.named, Named::right) << described(t);
}

TEST(Faults, OfInputsAreDetected) {
  Small small;
  small.options.faults = {"batch.repeated", "batch.labels", "rate", "nan"};
  const std::vector<Trial> all = small.run();
  ASSERT_EQ(all.size(), 4);
  expect_detected(all);
}

TEST(Faults, OfAFrozenScaleAndOfASlowRankAreNamed) {
  Small small;
  small.options.faults = {"scale", "rank"};
  small.options.config.optim.learning_rate = 2e-2,
  small.options.config.optim.schedule.warmup = 0.5;  // maxima grow while the scale is frozen
  const std::vector<Trial> all = small.run();
  ASSERT_EQ(all.size(), 2);
  expect_detected(all);
}

// An outlier takes the bits of a tensor with one scale, and not of one with a scale per block.
TEST(Faults, BlocksKeepTheOtherValuesOfATensorWithAnOutlier) {
  Small small;
  small.options.faults = {"outlier.x"}, small.options.recipes = {"current", "mxfp8"};
  const std::vector<Trial> all = small.run();
  ASSERT_EQ(all.size(), 2);
  for (const Trial& t : all) EXPECT_GT(t.damage.sqnr_before, 25);
  EXPECT_LT(all[0].damage.sqnr, 5) << "one scale";
  EXPECT_GT(all[1].damage.sqnr, 20) << "blocks";
}

TEST(Faults, TheSecondRunOfAFaultHasOtherKeys) {
  Small small;
  small.options.faults = {"batch.labels"}, small.options.act = {"optim.max_grad_norm=0.001"};
  const std::vector<Trial> all = small.run();
  ASSERT_EQ(all.size(), 1);
  EXPECT_TRUE(all[0].act.ran);
  EXPECT_NE(all[0].act.loss, all[0].off.loss);
  small.options.faults = {"no such fault"};
  EXPECT_THROW(small.run(), ConfigError);
}

TEST(Campaigns, CountAlertsOfHealthyRunsAndMeasureTheirCost) {
  Small small;
  train::RunConfig c = small.options.config;
  c.train.steps = 20, c.optim.learning_rate = 1e-3;
  const Healthy healthy = healthy_runs(c, 2);
  EXPECT_EQ(healthy.runs, 2);
  EXPECT_TRUE(healthy.alerts.empty()) << healthy.alerts.at(0);
  const Cost cost = alert_cost(c, 4);
  EXPECT_EQ(cost.alerts.wall.pairs, 4);
  EXPECT_EQ(cost.every_step.processor.pairs, 4);
  EXPECT_GT(cost.rules_microseconds, 0);
  EXPECT_GT(cost.step_microseconds, cost.rules_microseconds);
}

}  // namespace
}  // namespace octet::faults
