#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>

#include "octet/ops/quantize/quantize.hpp"
#include "octet/ops/quantize/saved.hpp"
#include "octet/train/run/dry_run/dry_run.hpp"
#include "octet/train/step/evaluate.hpp"
#include "octet/train/step/nonfinite.hpp"
#include "octet/train/step/readout.hpp"
#include "octet/train/step/small_model.testing.hpp"
#include "tests/testing/tensors.hpp"

// recipe.activations = "fp8": what forward saves for backward besides GEMM operands, in 8-bit codes.

namespace octet::train {
namespace {

using namespace octet::train::testing;

constexpr scaling::SavedActivations fp8 = scaling::SavedActivations::fp8;

EngineConfig config_of(const std::string& family, const std::string& recipe, bool coded) {
  EngineConfig config = small_engine(family, recipe);
  config.shape.vocabulary = 257, config.sequence = 64;
  if (coded) config.precision.activations = fp8;
  return config;
}

// Bytes of this project's licence: text that is always there.
data::Batch text_batch(std::uint64_t seed) {
  static const std::string text = [] {
    std::ifstream file(OCTET_SOURCE_DIR "/LICENSE", std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }();
  data::Batch b;
  b.rows = 4, b.length = 64;
  for (std::int64_t r = 0; r < b.rows; ++r) {
    const std::size_t place = philox(seed, std::uint64_t(r)).w[0] % (text.size() - 65);
    for (std::size_t i = 0; i < 64; ++i) {
      b.inputs.push_back(std::uint8_t(text[place + i]));
      b.targets.push_back(std::uint8_t(text[place + i + 1]));
    }
  }
  return b;
}

// Weights after some steps in FP32, parameter by parameter.
std::vector<std::vector<float>> trained_weights(const std::string& family) {
  Engine e(config_of(family, "fp32", false), Device::cpu, machine::machine_target(Device::cpu));
  StepRunner runner = begin_steps(e);
  for (int s = 0; s < 60; ++s) runner.run(std::vector{text_batch(std::uint64_t(s))}, {.learning_rate = 3e-3});
  std::vector<std::vector<float>> out;
  for (const Stored& t : e.parameters.values()) out.push_back(nn::flat_values(e.stream, {t}));
  return out;
}

struct Step {
  double loss = 0;
  std::vector<std::vector<float>> gradients;
};

// Loss and gradients at these weights.
Step step_at(const EngineConfig& config, const std::vector<std::vector<float>>& weights) {
  Engine e(config, Device::cpu, machine::machine_target(Device::cpu));
  StepRunner runner = begin_steps(e);
  const auto values = e.parameters.values();
  for (std::size_t i = 0; i < values.size(); ++i) nn::set_values(e.stream, values[i], weights[i].data());
  e.parameters.mark_changed();
  Step out;
  runner.run(std::vector{text_batch(1000)}, {.learning_rate = 0}, [&] {
    out.loss = read_out(e).loss;
    for (const Stored& g : e.parameters.gradients()) out.gradients.push_back(nn::flat_values(e.stream, std::vector{g}));
  });
  return out;
}

// ||found - wanted|| / ||wanted||
double relative_error(const std::vector<std::vector<float>>& found, const std::vector<std::vector<float>>& wanted) {
  double error = 0, norm = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i)
    for (std::size_t k = 0; k < wanted[i].size(); ++k)
      error += std::pow(double(found[i][k]) - double(wanted[i][k]), 2), norm += std::pow(double(wanted[i][k]), 2);
  return std::sqrt(error / norm);
}

constexpr double e4m3_rounding = 0x1p-4;  // largest relative error of a normal number

class SavedCodes : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(SavedActivations, SavedCodes, ::testing::Values("llama", "qwen2", "qwen3", "gpt2"));

// A gradient is a sum of products with saved activations, so their errors, of e4m3_rounding at most, average.
TEST_P(SavedCodes, CodesLeaveForwardUnchangedAndGradientsWithinTheRoundingOfCodes) {
  const auto weights = trained_weights(GetParam());
  const Step wanted = step_at(config_of(GetParam(), "fp32", false), weights);
  const double of_bf16 = relative_error(step_at(config_of(GetParam(), "bf16", false), weights).gradients, wanted.gradients);
  for (const char* recipe : {"fp32", "bf16", "current", "block128"}) {
    const Step plain = step_at(config_of(GetParam(), recipe, false), weights),
               coded = step_at(config_of(GetParam(), recipe, true), weights);
    EXPECT_EQ(coded.loss, plain.loss) << recipe;
    const double added = relative_error(coded.gradients, plain.gradients);
    EXPECT_GT(added, 0) << recipe;
    EXPECT_LT(added, e4m3_rounding) << recipe;
    if (std::string(recipe) != "bf16") continue;
    // Less than 8-bit GEMMs add, and than if every rounding to BF16, of 2^-9, were one to E4M3.
    const Step gemms = step_at(config_of(GetParam(), "current", false), weights);
    const double of_coded = relative_error(coded.gradients, wanted.gradients);
    EXPECT_LT(of_coded, relative_error(gemms.gradients, wanted.gradients));
    EXPECT_LT(of_coded, 32 * of_bf16);
  }
}

TEST_P(SavedCodes, RecomputingFromCodesGivesTheSameGradientsBitForBit) {
  const auto gradients_of = [](const EngineConfig& config) {
    Engine e(config, Device::cpu, machine::machine_target(Device::cpu));
    std::vector<float> out;
    train_steps(e, 2).run(std::vector{random_batch(4, 32, 61, 9)}, {.learning_rate = 1e-3},
                          [&] { out = nn::flat_values(e.stream, e.parameters.gradients()); });
    return out;
  };
  for (const char* recipe : {"bf16", "delayed", "current", "block128"}) {
    EngineConfig config = small_engine(GetParam(), recipe);
    config.precision.activations = fp8;
    const std::vector<float> wanted = gradients_of(config);
    for (const std::vector<std::string>& parts :
         {std::vector<std::string>{"norm"}, {"activation"}, {"norm", "activation"}, {"mlp"}, {"attention"}, {"block"}}) {
      config.model.recompute = nn::Recompute::named(parts);
      EXPECT_EQ(gradients_of(config), wanted) << recipe << ::testing::PrintToString(parts);
    }
  }
}

TEST_P(SavedCodes, ADryRunNeedsTheMemoryThatARealRunTakesToTheByte) {
  for (const char* recipe : {"fp32", "bf16", "current", "mxfp8"})
    for (const std::vector<std::string>& parts : {std::vector<std::string>{}, {"norm", "activation"}, {"mlp"}, {"block"}}) {
      EngineConfig config = small_engine(GetParam(), recipe, nn::Recompute::named(parts));
      config.precision.activations = fp8;
      const DryRun dry = dry_run(config, machine::machine_target(Device::cpu), 2, 2);
      Engine e(config, Device::cpu, machine::machine_target(Device::cpu));
      train_steps(e, 2, 2);
      evaluate_batch(e, random_batch(2, 32, 61, 1));
      EXPECT_EQ(dry.memory.by_category, e.stream.arena().peak().by_category) << recipe << ::testing::PrintToString(parts);
    }
}

// Bytes per token that a block saves on a GPU.
double saved_per_token(const std::string& recipe, bool coded, const nn::Recompute& recompute = {}) {
  EngineConfig config{.shape = {.family = "qwen2",
                                .width = 3584,
                                .layers = 2,
                                .heads = 28,
                                .kv_heads = 4,
                                .head_dim = 128,
                                .hidden = 18944,
                                .vocabulary = 512,
                                .max_sequence = 1024,
                                .tied = false},
                      .model = {.recompute = recompute},
                      .precision = {.recipe = recipe},
                      .optimizer = optim::OptimizerConfig{},
                      .sequence = 1024};
  if (coded) config.precision.activations = fp8;
  return double(dry_run(config, {.device = Device::cuda, .multiprocessors = 8}, 1, 1).saved.back()) / 1024;
}

// The widths are those of Qwen2.5-7B: D = 3584, F = 18944, (H + 2 Hkv) d = 4608.
TEST(SavedActivations, OfABlockAreSmallerThanInBf16ByTheFactorsOfTheDocuments) {
  const double D = 3584, F = 18944, Q = 4608, scales = 33.0 / 32, statistics = 4 * (2 + 28);
  const double bf16 = saved_per_token("bf16", false), activation = saved_per_token("bf16", false, {.activation = true}),
               found = saved_per_token("current", true);
  EXPECT_NEAR(bf16, 10 * D + 2 * Q + 6 * F + statistics, 1);
  EXPECT_NEAR(activation, bf16 - 2 * F, 1);
  EXPECT_NEAR(found, 6 * D + D * scales + 2 * Q + 2 * F * scales + statistics, 4) << "two norms' operands, x, z, o, qkv, h";
  EXPECT_GE(bf16 / found, 1.9);
  EXPECT_GE(activation / found, 1.45);
}

TEST(SavedActivations, HaveARowOfThePlanEachAndHealthInMeasuredSteps) {
  EngineConfig config = small_engine("qwen3", "current");
  config.shape.head_dim = 8, config.precision.activations = fp8;  // one key head more: 2 x 8 columns are less than a block
  Engine e(config, Device::cpu, machine::machine_target(Device::cpu));
  train_steps(e, 2);
  const auto row = [&](const std::string& path) -> std::string {
    for (const auto& r : e.precision.rows())
      if (r.path == path) return r.precision + " | " + r.why;
    return "none";
  };
  EXPECT_EQ(row("layers.1.mlp.h"), "e4m3; 1x32 blocks, E8M0 scales | saved: recipe.activations = \"fp8\"");
  EXPECT_EQ(row("layers.1.attn.o"), row("layers.1.mlp.h"));
  EXPECT_EQ(row("layers.0.attn.q"), row("layers.1.mlp.h"));
  EXPECT_EQ(row("layers.0.attn.k"), "bf16 | saved: 16 columns are not a multiple of 32");
  EXPECT_EQ(row("layers.0.attn.q,k,v"), "bf16 | saved: errors of queries and keys would grow with the scores");
  EXPECT_TRUE(row("residual stream").starts_with("bf16 | saved: ")) << row("residual stream");

  StepRunner runner(e);
  const auto& slots = e.precision.slots().slots();
  for (const bool measure : {true, false})
    runner.run(std::vector{random_batch(4, 32, 61, 1)}, {.learning_rate = 1e-3, .measure = measure}, [&] {
      const Readout seen = read_out(e);
      int saved = 0;
      for (std::size_t i = 0; i < slots.size(); ++i) {
        if (slots[i].operand != scaling::Operand::saved) continue;
        ++saved;
        EXPECT_EQ(seen.amax[i] > 0, measure) << slots[i].path;
        EXPECT_EQ(seen.health[i].values > 0, measure) << slots[i].path;
        EXPECT_EQ(seen.health[i].saturated, 0) << slots[i].path;
        if (measure) {
          EXPECT_GT(10 * std::log10(seen.health[i].signal / seen.health[i].noise), -20 * std::log10(e4m3_rounding)) << slots[i].path;
        }
      }
      EXPECT_EQ(saved, 6) << "h, o and q of two blocks";
    });
}

// The largest float is a finite parameter, and infinite as a BF16 activation.
TEST(SavedActivations, OfAnOverflowAreFoundAndTheStepIsSkipped) {
  for (const char* recipe : {"bf16", "current"}) {
    EngineConfig config = small_engine("gpt2", recipe);
    config.precision.activations = fp8;
    Engine e(config, Device::cpu, machine::machine_target(Device::cpu));
    StepRunner runner = train_steps(e, 1);
    Parameter* poisoned = nullptr;
    for (Parameter* p : e.parameters.list())
      if (p->path == "layers.1.mlp.up.bias") poisoned = p;
    ASSERT_NE(poisoned, nullptr);
    const std::vector<float> healthy = nn::flat_values(e.stream, {poisoned->value});
    std::vector<float> bad = healthy;
    bad[5] = std::numeric_limits<float>::max();
    nn::set_values(e.stream, poisoned->value, bad.data());
    const std::vector<float> before = nn::flat_values(e.stream, e.parameters.values());
    const std::vector<data::Batch> batches{random_batch(4, 32, 61, 3)};
    for (const bool measure : {false, true})
      runner.run(batches, {.learning_rate = 1e-2, .measure = measure}, [&] {
        EXPECT_NE(e.optimizer->last(e.stream).skip, 0.0f) << recipe;
        EXPECT_EQ(nn::flat_values(e.stream, e.parameters.values()), before) << recipe;
        EXPECT_EQ(first_nonfinite(e, batches), "layers.1.mlp.up.y") << recipe;
      });
    nn::set_values(e.stream, poisoned->value, healthy.data());
    runner.run(batches, {.learning_rate = 1e-2});
    EXPECT_EQ(e.optimizer->last(e.stream).skip, 0.0f) << "training resumes once the fault is gone";
  }
}

// So that a value that is not finite reaches the gradient norm, and the step is skipped.
TEST(SavedActivations, KeepAnInfinityAndANaN) {
  Stream s(Device::cpu);
  const Tensor x = octet::testing::gaussian_tensor(s, {2, 64}, 1, DType::bf16);
  x.bf16()[3] = to_bf16(INFINITY), x.bf16()[40] = to_bf16(NAN);
  ops::Sink codes = ops::saved_sink(s, x, ops::saved_spec(), Lifetime::scratch);
  ops::quantize(s, x, codes);
  const Tensor back = ops::values_of(s, {codes.codes.rows, DType::bf16});
  EXPECT_EQ(value_at(back, 3), INFINITY);
  EXPECT_TRUE(std::isnan(value_at(back, 40)));
}

}  // namespace
}  // namespace octet::train
