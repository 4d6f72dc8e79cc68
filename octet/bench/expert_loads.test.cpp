#include <gtest/gtest.h>

#include "octet/bench/sites.hpp"
#include "octet/bench/steps.hpp"
#include "octet/bench/steps_on_ranks.hpp"
#include "octet/train/run/config/run_config.hpp"
#include "octet/train/run/dry_run/dry_run.hpp"

namespace octet::bench {
namespace {

train::RunConfig small(const char* size) {
  train::RunConfig c;
  c.model.size = size, c.model.layers = 2;
  c.data.sequence_length = 32, c.train.batch = 2, c.train.accumulate = 1;
  return c;
}

Sites sites(const char* size) {
  const train::RunConfig c = small(size);
  return sites_of(train::dry_run(train::engine_config(c), Target(), 1, 1).plan, c.model.shape());
}

TEST(ExpertLoads, AreOfExpertsThatAreTheMlpOfABlockWithoutAnother) {
  EXPECT_EQ(sites("moe-tiny").mlp_in.path, "layers.0.mlp.experts.gate_up");
  EXPECT_EQ(sites("moe-tiny").mlp_out.path, "layers.0.mlp.experts.down");
  EXPECT_EQ(sites("llama-tiny").mlp_in.path, "layers.0.mlp.gate_up");
}

TEST(ExpertLoads, AreThoseThatABiasOfTheirChoicesGives) {
  const auto fullest = [](const ExpertLoads& loads) {
    train::RunConfig c = small("moe-tiny");
    loads.configure(c);
    return measure_step(c, Device::cpu, Target{}, 1, Floor{}, loads).fullest_load;
  };
  // A bias above all scores chooses the last 2 of 8 experts for every token.
  EXPECT_EQ(fullest(ExpertLoads::of_spread(100)), 4);
  EXPECT_EQ(fullest(ExpertLoads::of_spread(0)), 1);
  EXPECT_GT(fullest(ExpertLoads()), 1);
  EXPECT_LT(fullest(ExpertLoads()), 3);
  train::RunConfig dense = small("llama-tiny");
  EXPECT_EQ(measure_step(dense, Device::cpu, Target{}, 1, Floor{}).fullest_load, 0);
}

TEST(ExpertLoads, AreThoseOfRanks) {
  const auto fullest = [](double spread) {
    StepBenchOptions o{
        .ranks = {.device = "cpu", .ranks = 2, .repeats = 1}, .config = small("moe-tiny"), .loads = ExpertLoads::of_spread(spread)};
    o.config.ranks.expert = 2;
    const StepsOnRanksResult result = measure_steps_on_ranks(o);
    EXPECT_NE(table_text(result).find("fullest expert"), std::string::npos);
    return result.rows.at(0).steps.fullest_load;
  };
  EXPECT_EQ(fullest(0), 1);
  EXPECT_EQ(fullest(100), 4);
}

// They are in no plan's count, since they depend on choices. Chosen in turn, both of a token's experts are on one rank, so that half of a
// rank's 64 rows travel: docs/experts.md has the formula.
TEST(ExpertLoads, RowsOfExpertsAreAmongTheBytesThatRanksSend) {
  StepBenchOptions o{.ranks = {.device = "cpu", .ranks = 2, .repeats = 1}, .config = small("moe-tiny"), .loads = ExpertLoads::of_spread(0)};
  o.config.ranks.expert = o.config.ranks.data = 2;
  const train::DryRun dry = train::dry_run(train::engine_config(o.config), Target(), o.config.train.batch, 1);
  const std::int64_t layers = 2, rows = 32, width = o.config.model.shape().width, value = 2, choices = 2;
  for (const RankTimes& rank : measure_steps_on_ranks(o).rows.at(0).steps.each)
    EXPECT_EQ(std::int64_t(rank.sent_bytes) - dry.step.sent_bytes, layers * rows * (5 * width * value + 12 * choices));
}

}  // namespace
}  // namespace octet::bench
