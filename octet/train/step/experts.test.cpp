#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "octet/train/run/dry_run/dry_run.hpp"
#include "octet/train/step/evaluate.hpp"
#include "octet/train/step/readout.hpp"
#include "octet/base/file.hpp"
#include "octet/io/tensor_folder.hpp"
#include "octet/train/step/small_model.testing.hpp"
#include "octet/train/step/weights.hpp"
#include "tests/testing/scratch.hpp"

// Models with experts through whole steps.

namespace octet::train {
namespace {

using namespace octet::train::testing;

// Two blocks of four experts, of which two are chosen; every recipe's blocks fit the matrices.
EngineConfig config_of(const std::string& recipe, const nn::Recompute& recompute = {}) {
  EngineConfig c = small_engine("qwen3_moe", recipe, recompute);
  c.shape.width = 128, c.shape.head_dim = 32;
  c.shape.experts = {.number = 4, .chosen = 2, .width = 64, .normalize = true, .balance = {.loss = 0.01}};
  return c;
}

// Latent attention, sigmoid scores, groups, biases, a shared expert and a dense first block.
EngineConfig shared_config_of(const std::string& recipe, const nn::Recompute& recompute = {}) {
  EngineConfig c = config_of(recipe, recompute);
  c.shape.family = "deepseek_v3", c.shape.layers = 3, c.shape.latent = small_latent(c.shape);
  c.shape.experts.biased = true;
  c.shape.experts.score = ops::Routing::Score::sigmoid, c.shape.experts.shared = 1, c.shape.experts.first_dense = 1;
  c.shape.experts.groups = 2, c.shape.experts.kept_groups = 1, c.shape.experts.scaling = 2.5, c.shape.experts.limit = 10;
  c.shape.experts.balance = {.over = nn::Balance::Over::sequence, .loss = 1e-3, .z_loss = 1e-4, .bias_rate = 1e-3};
  return c;
}

Engine engine_of(const EngineConfig& config) { return Engine(config, Device::cpu, machine::machine_target(Device::cpu)); }

double loss_of(StepRunner& runner, Engine& e, std::uint64_t seed, bool measure = false) {
  double loss = 0;
  runner.run(std::vector{random_batch(4, 32, 61, seed)}, {.learning_rate = 1e-2, .measure = measure}, [&] { loss = read_out(e).loss; });
  return loss;
}

class ExpertsInEveryRecipe : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Experts, ExpertsInEveryRecipe,
                         ::testing::Values("fp32", "bf16", "fp16", "delayed", "current", "rowwise", "block128", "mxfp8", "global"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(ExpertsInEveryRecipe, LearnsABatchByHeartWithTheSameBitsInTwoRuns) {
  for (const auto make : {config_of, shared_config_of}) {
    std::vector<double> losses[2];
    for (std::vector<double>& run : losses) {
      Engine e = engine_of(make(GetParam(), {}));
      StepRunner runner = begin_steps(e);
      for (int s = 0; s < 12; ++s) run.push_back(loss_of(runner, e, 1, s % 3 == 0));
    }
    EXPECT_EQ(losses[0], losses[1]);
    EXPECT_NEAR(losses[0].front(), std::log(61.0), 0.2);
    EXPECT_LT(losses[0].back(), 0.75 * losses[0].front());
  }
}

TEST_P(ExpertsInEveryRecipe, ADryRunNeedsTheMemoryAndTheWorkOfARealRun) {
  for (const auto make : {config_of, shared_config_of})
    for (const bool coded : {false, true}) {
      EngineConfig config = make(GetParam(), {});
      if (coded && std::string(GetParam()) == "fp16") continue;
      if (coded) config.precision.activations = scaling::SavedActivations::fp8;
      const DryRun dry = dry_run(config, machine::machine_target(Device::cpu), 2, 2);
      Engine e = engine_of(config);
      StepRunner runner = train_steps(e, 1, 2);
      const Work before = e.stream.work();
      runner.run(std::vector{random_batch(2, 32, 61, 1), random_batch(2, 32, 61, 2)}, {.learning_rate = 1e-2});
      const Work real = e.stream.work() - before;
      runner.run(std::vector{random_batch(2, 32, 61, 1), random_batch(2, 32, 61, 2)}, {.learning_rate = 1e-2, .measure = true});
      evaluate_batch(e, random_batch(2, 32, 61, 1));
      EXPECT_EQ(dry.memory.by_category, e.stream.arena().peak().by_category) << coded;
      EXPECT_EQ(dry.step.ops, real.ops);
      EXPECT_EQ(dry.step.flops, real.flops);
      EXPECT_EQ(dry.step.bytes, real.bytes);
    }
}

TEST_P(ExpertsInEveryRecipe, GradientsAreTheSameBitsWhateverIsRecomputed) {
  for (const auto make : {config_of, shared_config_of}) {
    const auto gradients = [&](const std::vector<std::string>& parts) {
      Engine e = engine_of(make(GetParam(), nn::Recompute::named(parts)));
      StepRunner runner = train_steps(e, 2);
      std::vector<float> out;
      runner.run(std::vector{random_batch(2, 32, 61, 1), random_batch(2, 32, 61, 2)}, {.learning_rate = 1e-2},
                 [&] { out = nn::flat_values(e.stream, e.parameters.gradients()); });
      return out;
    };
    const std::vector<float> kept = gradients({});
    for (const std::vector<std::string>& parts :
         std::vector<std::vector<std::string>>{{"norm"}, {"activation"}, {"mlp"}, {"norm", "activation"}, {"attention"}, {"block"}})
      EXPECT_EQ(gradients(parts), kept) << ::testing::PrintToString(parts);
  }
}

TEST(Experts, TrainAtEveryLevel) {
  for (const optim::Level level : {optim::Level::O0, optim::Level::O1, optim::Level::O2, optim::Level::O3})
    for (const char* recipe : {"bf16", "current", "block128"}) {
      EngineConfig config = config_of(recipe);
      config.optimizer->level = level;
      Engine e = engine_of(config);
      StepRunner runner = begin_steps(e);
      const double first = loss_of(runner, e, 1);
      double last = 0;
      for (int s = 0; s < 15; ++s) last = loss_of(runner, e, 1);
      EXPECT_LT(last, 0.8 * first) << recipe << to_text(level);
      for (const Parameter* p : e.parameters.list())
        if (p->role == ParameterRole::router) {
          EXPECT_EQ(p->value.storage, Storage::f32) << p->path;
          EXPECT_EQ(p->gradient.stored().storage, Storage::f32) << p->path;
        }
    }
}

TEST(Experts, ThePlanHasARowForTheRouterAndOneForEachStack) {
  const DryRun dry = dry_run(config_of("current"), machine::machine_target(Device::cpu), 2, 1);
  std::vector<std::string> rows;
  for (const scaling::PlanRow& row : dry.plan)
    if (row.path.starts_with("layers.0.mlp")) rows.push_back(row.path + ": " + row.precision.substr(0, 6));
  EXPECT_EQ(rows, (std::vector<std::string>{"layers.0.mlp.router: f32", "layers.0.mlp.experts.gate_up: x e4m3",
                                            "layers.0.mlp.experts.down: x e4m3"}));
}

// Every token chooses K experts, whatever the micro-batches are.
TEST(Experts, LoadsOfAStepCountEveryChoiceOfItsTokens) {
  Engine e = engine_of(config_of("bf16"));
  StepRunner runner = begin_steps(e);
  runner.run(std::vector{random_batch(2, 32, 61, 1), random_batch(2, 32, 61, 2)}, {.learning_rate = 0}, [&] {
    const nn::Routers& routers = e.model->routers();
    ASSERT_EQ(routers.counts().shape, (Shape{2, 4}));
    for (int l = 0; l < 2; ++l) {
      EXPECT_EQ(std::accumulate(routers.counts().f32() + 4 * l, routers.counts().f32() + 4 * l + 4, 0.0f), 2 * 128.0f);
      EXPECT_NEAR(std::accumulate(routers.sums().f32() + 4 * l, routers.sums().f32() + 4 * l + 4, 0.0f), 128.0f, 1e-3);
    }
  });
}

// With grouped heads instead of latents.
TEST(Experts, ABiasMovesByItsRateTowardsBalance) {
  EngineConfig config = shared_config_of("bf16");
  config.shape.family = "deepseek_moe", config.shape.latent = {}, config.shape.kv_heads = 2, config.shape.experts.biased = false;
  Engine e = engine_of(config);
  StepRunner runner = begin_steps(e);
  std::vector<float> counts;
  runner.run(std::vector{random_batch(4, 32, 61, 1)}, {.learning_rate = 0},
             [&] { counts.assign(e.model->routers().counts().f32(), e.model->routers().counts().f32() + 8); });
  for (int i = 0; i < 8; ++i) {
    const float over = counts[std::size_t(i)] - 2 * 128 / 4.0f;
    EXPECT_EQ(e.model->routers().biases().f32()[i], over == 0 ? 0 : over < 0 ? 1e-3f : -1e-3f) << i;
  }
}

TEST(Experts, BiasesOfRoutersGoToFoldersAndComeBackBitByBit) {
  const octet::testing::Scratch scratch;
  const EngineConfig config = shared_config_of("bf16");
  Engine e = engine_of(config);
  train_steps(e, 3);
  save_weights(e, scratch.at("model"), DType::bf16);
  EngineConfig fixed = config;
  fixed.shape.experts.balance.bias_rate = 0;
  Engine again = engine_of(fixed);
  load_weights(again, scratch.at("model"));
  const float *const x = e.model->routers().biases().f32(), *const y = again.model->routers().biases().f32();
  EXPECT_EQ(std::vector<float>(x, x + 8), std::vector<float>(y, y + 8));
  EXPECT_GT(std::count_if(x, x + 8, [](float b) { return b != 0; }), 4);
  StepRunner(again).run(std::vector{random_batch(4, 32, 61, 1)}, {.learning_rate = 1e-2});
  EXPECT_EQ(std::vector<float>(x, x + 8), std::vector<float>(y, y + 8)) << "they count, and stay";

  const std::string file = read_file(scratch.at("model/model.safetensors"), std::size_t(1) << 30);
  std::string damaged = file;
  const io::TensorFolder files = io::TensorFolder::open(scratch.at("model"));
  const io::TensorView bias = files.tensor("model.layers.1.mlp.gate.e_score_correction_bias");
  const std::string bytes(reinterpret_cast<const char*>(bias.bytes.data()), bias.bytes.size());
  damaged.replace(damaged.rfind(bytes), 4, std::string("\0\0\xC0\x7F", 4));
  scratch.write("damaged/config.json", read_file(scratch.at("model/config.json"), 1 << 20));
  scratch.write("damaged/model.safetensors", damaged);
  const std::string error = octet::testing::error_of<DataError>([&] { load_weights(again, scratch.at("damaged")); });
  EXPECT_TRUE(octet::testing::has(error, "e_score_correction_bias\" has values that are not finite")) << error;
}

// Queries, keys and values are made of latents in BF16, then encoded.
TEST(Experts, LatentAttentionRunsThroughEightBitCodesOnACpu) {
  const auto losses = [](scaling::AttentionPrecision attention) {
    EngineConfig config = shared_config_of("current");
    config.precision.attention = attention;
    Engine e = engine_of(config);
    StepRunner runner = begin_steps(e);
    std::vector<double> out;
    for (int s = 0; s < 15; ++s) out.push_back(loss_of(runner, e, 1));
    return out;
  };
  const std::vector<double> plain = losses(scaling::AttentionPrecision::bf16), coded = losses(scaling::AttentionPrecision::fp8);
  EXPECT_NE(coded, plain);
  EXPECT_LT(coded.back(), 0.75 * coded.front());
  EXPECT_LT(plain.back(), 0.75 * plain.front());
}

// With a coefficient that outweighs all else, choices become equal.
TEST(Experts, TheLossBalancesARouterThatPrefersAnExpert) {
  for (const nn::Balance::Over over : {nn::Balance::Over::model, nn::Balance::Over::layer, nn::Balance::Over::sequence}) {
    EngineConfig config = config_of("fp32");
    config.shape.experts.balance = {.over = over, .loss = 1};
    Engine e = engine_of(config);
    StepRunner runner = begin_steps(e);
    for (Parameter* p : e.parameters.list())
      if (p->role == ParameterRole::router)
        for (std::int64_t i = 0; i < p->shape.count(); ++i) p->value.codes.f32()[i] *= 40;
    e.parameters.mark_changed();
    const auto imbalance = [&] {
      double out = 0;
      runner.run(std::vector{random_batch(4, 32, 61, 5)}, {.learning_rate = 3e-3}, [&] {
        for (int i = 0; i < 8; ++i) out = std::max(out, double(e.model->routers().counts().f32()[i]) / 64);
      });
      return out;
    };
    const double before = imbalance();
    double after = 0;
    for (int s = 0; s < 60; ++s) after = imbalance();
    EXPECT_LT(after, before) << int(over);
    EXPECT_LT(after, 1.35) << int(over) << " from " << before;
  }
}

}  // namespace
}  // namespace octet::train
