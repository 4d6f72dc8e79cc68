#include "octet/train/run/dry_run/dry_run.hpp"

#include <gtest/gtest.h>

#include "octet/train/step/small_model.testing.hpp"

namespace octet::train {
namespace {

// A GPU's, which needs none to be planned for.
constexpr Target gpu{.gemm_compute = DType::bf16, .device = Device::cuda, .multiprocessors = 132};

EngineConfig config_of(optim::Level level, std::int64_t layers) {
  EngineConfig c = testing::small_engine("llama", "current");
  c.shape.layers = layers, c.shape.width = 512, c.shape.hidden = 1536, c.shape.head_dim = 512 / c.shape.heads;
  c.optimizer->level = level;
  return c;
}

struct States {
  double bytes = 0;
  std::int64_t parameters = 0;
};
States states_of(optim::Level level, std::int64_t layers) {
  const DryRun dry = dry_run(config_of(level, layers), gpu, 1, 2);
  States out{.parameters = dry.parameters};
  for (const Category c : {Category::weights, Category::gradients, Category::optimizer})
    out.bytes += double(dry.memory.by_category[std::size_t(c)]);
  return out;
}

// By the arena: what four blocks more take, without their norms, which are f32.
double bytes_per_parameter(optim::Level level) {
  const States few = states_of(level, 2), many = states_of(level, 6);
  const double norms = 4 * 2 * 512;
  return (many.bytes - few.bytes - 16 * norms) / (double(many.parameters - few.parameters) - norms);
}

TEST(DryRun, EveryLevelHasItsBytesPerParameterOfBlockMatricesAndATenthForScales) {
  for (const auto& [level, bytes] : {std::pair(optim::Level::O0, 16.0), std::pair(optim::Level::O1, 13.0), std::pair(optim::Level::O2, 8.0),
                                     std::pair(optim::Level::O3, 6.0)}) {
    EXPECT_GE(bytes_per_parameter(level), bytes) << to_text(level);
    EXPECT_LE(bytes_per_parameter(level), bytes + 0.1) << to_text(level);
  }
}

std::string row_of(const DryRun& dry, const std::string& path) {
  for (const scaling::PlanRow& row : dry.plan)
    if (row.path == path) return row.precision + ": " + row.why;
  return "no such row";
}

TEST(DryRun, ThePlanTellsWhatTheLevelStoresAndWhichKeyChangesIt) {
  EngineConfig c = config_of(optim::Level::O3, 2);
  c.optimizer->v = Storage::bf16;
  const DryRun dry = dry_run(c, gpu, 1, 1);
  EXPECT_EQ(row_of(dry, "master weights"), "f16: level O3; 2 bytes per value, a scale per tensor, rounded stochastically");
  EXPECT_EQ(row_of(dry, "weight gradients"), "e4m3: level O3; 1 byte per value, a scale per 128 values, rounded stochastically");
  EXPECT_EQ(row_of(dry, "first moments"), "e4m3: level O3; 1 byte per value, a scale per 128 values");
  EXPECT_EQ(row_of(dry, "second moments"), "bf16: changed by optim.v, level O3 has f16; 2 bytes per value, rounded stochastically");
  EXPECT_EQ(row_of(dry, "matrices of blocks"), "6 bytes per parameter: weights, gradients and moments, without scales and 8-bit operands");
}

TEST(DryRun, ACombinationThatIsKnownToFailIsRefusedUnlessItIsAllowed) {
  for (const auto& [key, set] : {std::pair<const char*, void (*)(optim::OptimizerConfig&)>{
                                     "optim.master = \"bf16_nearest\"", [](auto& o) { o.master = Storage::bf16_nearest; }},
                                 {"optim.master = \"e4m3_tensor\"", [](auto& o) { o.master = Storage::e4m3_tensor; }},
                                 {"optim.m and optim.v", [](auto& o) { o.m = o.v = Storage::e4m3_tensor; }}}) {
    EngineConfig c = config_of(optim::Level::O0, 2);
    set(*c.optimizer);
    try {
      dry_run(c, gpu, 1, 1);
      FAIL() << key;
    } catch (const ConfigError& e) {
      EXPECT_NE(std::string(e.what()).find(key), std::string::npos) << e.what();
      EXPECT_NE(std::string(e.what()).find("optim.allow_unsafe = true"), std::string::npos) << e.what();
    }
    c.optimizer->allow_unsafe = true;
    EXPECT_NO_THROW(dry_run(c, gpu, 1, 1)) << key;
  }
}

TEST(DryRun, ARecipeInWhichNoLayerFitsIsRefusedUnlessLayersAreKeptByName) {
  const auto refusal = [](std::int64_t width, std::int64_t hidden, const scaling::PrecisionConfig& config) -> std::string {
    try {
      EngineConfig engine = testing::small_engine("llama", config.recipe);
      engine.shape.width = width, engine.shape.hidden = hidden, engine.precision = config;
      require_eight_bits(dry_run(engine, {}, 2, 1), config);
    } catch (const ConfigError& e) {
      return e.what();
    }
    return "";
  };
  for (const char* recipe : {"current", "delayed", "mxfp8"}) {
    const std::string all = refusal(36, 92, {.recipe = recipe});
    EXPECT_NE(all.find(format("recipe.name = \"{}\": none of the model's", recipe)), std::string::npos) << all;
    EXPECT_NE(all.find("is not a multiple of"), std::string::npos) << all;
    EXPECT_EQ(refusal(36, 92, {.recipe = recipe, .keep_bf16 = {"*"}}), "");
    EXPECT_EQ(refusal(64, 92, {.recipe = recipe}), "") << "attention fits";
  }
  EXPECT_EQ(refusal(36, 92, {.recipe = "bf16"}), "");
  EXPECT_NE(refusal(36, 92, {.recipe = "bf16", .rules = {{.path = "layers.0.*", .recipe = "current"}}}).find("with recipe.rules"),
            std::string::npos);
}

// Its choices reach fewer ranks than there are.
TEST(DryRun, OfASampledTokenHasNoMoreRowsForExpertsThanItSends) {
  EngineConfig c = testing::small_engine("qwen3_moe", "bf16");
  c.shape.experts = {.number = 4, .chosen = 2, .width = 64};
  c.planned_ranks = 4, c.ranks.expert = 4, c.sampled = 8;
  EXPECT_NO_THROW(dry_run(c, gpu, 2, 1));
  EXPECT_NO_THROW(dry_run(c, {}, 2, 1));
}

}  // namespace
}  // namespace octet::train
