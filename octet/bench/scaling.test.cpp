#include "octet/bench/scaling.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "octet/json/value.hpp"
#include "octet/machine/machine.hpp"
#include "octet/train/run/dry_run/dry_run.hpp"

namespace octet::bench {
namespace {

StepBenchOptions tiny(int ranks) {
  StepBenchOptions plan{.ranks = {.device = "cpu", .ranks = ranks, .repeats = 4}};
  train::RunConfig& c = plan.config;
  c.device = "cpu", c.threads = 1;
  c.model.size = "llama-tiny";
  c.model.layers = 1, c.model.width = 64, c.model.heads = 4, c.model.kv_heads = 2, c.model.hidden = 96;
  c.data.sequence_length = 16, c.train.batch = 2, c.train.accumulate = 0;
  plan.recipes = {"bf16", "current"};
  return plan;
}

const ScalingRow& row_of(const ScalingResult& r, Scaling kind, const char* recipe, int ranks) {
  return *std::find_if(r.rows.begin(), r.rows.end(),
                       [&](const ScalingRow& row) { return row.kind == kind && row.recipe == recipe && row.steps.ranks == ranks; });
}

TEST(Scaling, RanksArePowersOfTwoAndAllOfThem) {
  EXPECT_EQ(counts_up_to(1), std::vector<int>{1});
  EXPECT_EQ(counts_up_to(4), (std::vector{1, 2, 4}));
  EXPECT_EQ(counts_up_to(6), (std::vector{1, 2, 4, 6}));
  EXPECT_EQ(fewest_micro_batches(6), 12);
  EXPECT_EQ(fewest_micro_batches(8), 8);
}

TEST(Scaling, AStrongStepKeepsItsTokensAndAWeakOneGrowsWithTheRanks) {
  const ScalingResult r = measure_scaling(tiny(3));
  ASSERT_EQ(r.facts.place.ranks, 3);
  for (const char* recipe : {"bf16", "current"})
    for (const int n : {1, 2, 3}) {
      EXPECT_EQ(row_of(r, Scaling::strong, recipe, n).steps.tokens, 6 * 2 * 16) << n;
      EXPECT_EQ(row_of(r, Scaling::weak, recipe, n).steps.tokens, n * 2 * 2 * 16) << n;
    }
  EXPECT_EQ(row_of(r, Scaling::weak, "bf16", 1).gain, 1);
  EXPECT_EQ(row_of(r, Scaling::strong, "bf16", 3).steps.seconds.median, row_of(r, Scaling::weak, "bf16", 3).steps.seconds.median)
      << "the same step";
}

TEST(Scaling, PartsAreWithinTheStepAndBytesAreThoseOfThePlan) {
  StepBenchOptions plan = tiny(2);
  plan.config.ranks.zero = 1, plan.recipes = {"current"};
  const ScalingResult r = measure_scaling(plan);
  train::RunConfig config = plan.config;
  config.recipe.recipe = "current", config.ranks.data = 2;
  const train::DryRun dry = train::dry_run(train::engine_config(config), machine::machine_target(Device::cpu), 2, 1);
  const StepsOnRanks& two = row_of(r, Scaling::strong, "current", 2).steps;
  ASSERT_EQ(two.each.size(), 2u);
  for (const RankTimes& share : two.each) {
    EXPECT_EQ(share.sent_bytes, double(dry.step.sent_bytes));
    EXPECT_LE(share.peak_bytes, double(dry.memory.total)) << "which has a measuring step, too";
    EXPECT_GT(share.peak_bytes, 0.9 * double(dry.memory.total));
    EXPECT_GT(share.communication, 0);
    EXPECT_GT(share.update, 0);
    EXPECT_GT(share.compute(), 0);
    EXPECT_LE(share.seconds, 1.5 * two.seconds.high) << "the slowest rank decides";
  }
  const RankTimes one = row_of(r, Scaling::strong, "current", 1).steps.mean();
  EXPECT_EQ(one.sent_bytes, 0);
  EXPECT_LT(one.communication, 0.01 * one.seconds) << "it is alone";
}

TEST(Scaling, AStepThatCannotBeDividedIsRefused) {
  StepBenchOptions plan = tiny(4);
  plan.config.train.accumulate = 6;
  try {
    measure_scaling(plan);
    FAIL() << "6 micro-batches on 4 ranks";
  } catch (const ConfigError& e) {
    EXPECT_NE(std::string(e.what()).find("choose a multiple of 4"), std::string::npos) << e.what();
  }
}

TEST(Scaling, OverlapHidesTheShareOfCommunicationThatIsNoLongerExposed) {
  const auto row = [](bool overlaps, double exposed) {
    return ScalingRow{.overlaps = overlaps,
                      .steps = {.ranks = 2, .seconds = {.median = 1}, .each = {{1, exposed, 0.1}, {1, exposed, 0.1}}}};
  };
  ScalingResult r;
  r.rows = {row(false, 0.4), row(true, 0.1)};
  ASSERT_EQ(r.gains().size(), 1u);
  EXPECT_DOUBLE_EQ(r.gains()[0].share(), 0.75);
  EXPECT_DOUBLE_EQ(r.rows[1].steps.mean().compute(), 0.8);
  r.rows[1] = row(true, NAN);
  EXPECT_TRUE(r.gains().empty()) << "a GPU that could not be traced";
  r.rows[1] = row(true, 0.1);
  EXPECT_NE(table_text(r).find("overlap hides 75% of the communication"), std::string::npos);
}

}  // namespace
}  // namespace octet::bench
