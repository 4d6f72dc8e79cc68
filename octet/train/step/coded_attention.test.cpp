#include <gtest/gtest.h>

#include <cmath>

#include "octet/train/checkpoint/snapshot.hpp"
#include "octet/train/run/dry_run/dry_run.hpp"
#include "octet/train/step/meshes.testing.hpp"
#include "octet/train/step/readout.hpp"

// recipe.attention: attention whose products read 8-bit codes, in whole steps.

namespace octet::train {
namespace {

using namespace octet::train::testing;
using scaling::AttentionPrecision;

EngineConfig config_of(const std::string& family, const std::string& recipe, AttentionPrecision attention) {
  EngineConfig config = small_engine(family, recipe);
  config.precision.attention = attention, config.precision.options.history = 4;
  return config;
}

std::vector<float> gradients_of(const EngineConfig& config) {
  Engine e(config, Device::cpu, machine::machine_target(Device::cpu));
  std::vector<float> out;
  train_steps(e, 3).run(std::vector{random_batch(4, 32, 61, 9)}, {.learning_rate = 1e-3},
                        [&] { out = nn::flat_values(e.stream, e.parameters.gradients()); });
  return out;
}

double relative(const std::vector<float>& found, const std::vector<float>& wanted) {
  double error = 0, norm = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i)
    error += std::pow(double(found[i]) - double(wanted[i]), 2), norm += std::pow(double(wanted[i]), 2);
  return std::sqrt(error / norm);
}

TEST(CodedAttention, ChangesGradientsByTheRoundingOfCodesAndForwardAloneByLess) {
  for (const char* family : {"llama", "qwen3", "gpt2"}) {
    const auto at = [&](AttentionPrecision p) {
      EngineConfig config = config_of(family, "bf16", p);
      Engine e(config, Device::cpu, machine::machine_target(Device::cpu));
      StepRunner runner = begin_steps(e);
      std::vector<float> out;
      for (int s = 0; s < 3; ++s)  // scales follow the maxima of the steps before
        runner.run(std::vector{random_batch(4, 32, 61, 9)}, {.learning_rate = 0},
                   [&] { out = nn::flat_values(e.stream, e.parameters.gradients()); });
      return out;
    };
    const auto plain = at(AttentionPrecision::bf16);
    const double forward = relative(at(AttentionPrecision::fp8_forward), plain), both = relative(at(AttentionPrecision::fp8), plain);
    EXPECT_GT(forward, 0) << family;
    EXPECT_LT(forward, 0x1p-4) << family;
    EXPECT_GT(both, forward) << family;
    EXPECT_LT(both, 0x1p-3) << family;
  }
}

TEST(CodedAttention, RecomputedGivesTheSameGradientsBitForBit) {
  for (const char* recipe : {"delayed", "current"}) {
    EngineConfig config = config_of("qwen3", recipe, AttentionPrecision::fp8);
    const auto wanted = gradients_of(config);
    for (const std::vector<std::string>& parts : {std::vector<std::string>{"norm"}, {"attention"}, {"block"}}) {
      config.model.recompute = nn::Recompute::named(parts);
      EXPECT_EQ(gradients_of(config), wanted) << recipe << ::testing::PrintToString(parts);
    }
  }
}

TEST(CodedAttention, ItsScalesAndMaximaAreStateOfTheRun) {
  EngineConfig config = config_of("llama", "current", AttentionPrecision::fp8);
  Engine e(config, Device::cpu, machine::machine_target(Device::cpu));
  train_steps(e, 3);
  const std::vector<scaling::QuantizerState> states = e.precision.quantizer_states(e.stream);
  int of_attention = 0;
  for (const scaling::QuantizerState& q : states) {
    if (q.slot.operand < scaling::Operand::q) continue;
    ++of_attention;
    const bool given = q.slot.operand <= scaling::Operand::v || q.slot.operand == scaling::Operand::d_o;
    EXPECT_EQ(q.slot.path.substr(8), ".attn.scores");
    if (given) continue;
    EXPECT_NE(q.scales[0], 1) << name(q.slot.operand);
    EXPECT_GT(q.maxima[1], 0) << name(q.slot.operand) << " of the step before";
  }
  EXPECT_EQ(of_attention, 2 * 10);
}

TEST(CodedAttention, EveryOperandHasItsHealthInAMeasuredStep) {
  Engine e(config_of("llama", "delayed", AttentionPrecision::fp8), Device::cpu, machine::machine_target(Device::cpu));
  StepRunner runner = train_steps(e, 3);
  runner.run(std::vector{random_batch(4, 32, 61, 9)}, {.learning_rate = 1e-3, .measure = true}, [&] {
    const Readout shown = read_out(e);
    for (std::size_t i = 0; i < shown.health.size(); ++i) {
      const scaling::Slot& slot = e.precision.slots().slots()[i];
      if (slot.operand < scaling::Operand::q) continue;
      EXPECT_GT(shown.health[i].values, 0) << slot.path << name(slot.operand);
      EXPECT_GT(shown.amax[i], 0) << slot.path << name(slot.operand);
      EXPECT_EQ(shown.health[i].nonfinite, 0) << slot.path << name(slot.operand);
    }
  });
}

TEST(CodedAttention, ADryRunNeedsTheMemoryThatARealRunTakesAndCountsItsProducts) {
  for (const AttentionPrecision p : {AttentionPrecision::fp8_forward, AttentionPrecision::fp8}) {
    const EngineConfig config = config_of("llama", "current", p);
    const Target target = machine::machine_target(Device::cpu);
    const DryRun dry = dry_run(config, target, 4, 1),
                 plain = dry_run(config_of("llama", "current", AttentionPrecision::bf16), target, 4, 1);
    Engine e(config, Device::cpu, target);
    train_steps(e, 1);
    EXPECT_LE(e.stream.arena().peak().total, dry.memory.total) << "which has evaluation, too";
    const double product = 4 * 32 * 32 * 4 * 16.0, products = p == AttentionPrecision::fp8 ? 7 : 2;
    EXPECT_EQ(dry.step.fp8_flops - plain.step.fp8_flops, 2 * products * product) << "of two blocks";
    EXPECT_EQ(dry.step.flops, plain.step.flops);
  }
}

TEST(CodedAttention, WhatThisDeviceLacksIsRefusedByName) {
  const Target gpu{.device = Device::cuda, .multiprocessors = 132};
  const auto refusal = [&](const EngineConfig& config, const Target& target) -> std::string {
    try {
      dry_run(config, target, 1, 1);
    } catch (const ConfigError& e) {
      return e.what();
    }
    return "";
  };
  const EngineConfig narrow = config_of("llama", "current", AttentionPrecision::fp8_forward);
  EXPECT_EQ(refusal(narrow, gpu),
            "layers.0.attn.scores: attention in 8 bits (recipe.attention = \"fp8_forward\"): heads have 16 columns, and on a GPU cuDNN has "
            "kernels for 128; set recipe.attention = \"bf16\"");
  EngineConfig wide = config_of("llama", "current", AttentionPrecision::fp8);
  wide.shape.head_dim = 128, wide.shape.width = 512;
  EXPECT_EQ(refusal(wide, gpu), "");
  Target exact = gpu;
  exact.deterministic = true;
  EXPECT_NE(refusal(wide, exact).find("no fixed order; set recipe.attention = \"bf16\" or \"fp8_forward\""), std::string::npos);
}

// Scales that follow from maxima are those of all heads, so ranks that divide them make the codes of one rank.
TEST(CodedAttention, OnTensorRanksHasTheScalesOfOneRank) {
  const auto losses = [](std::int64_t ranks) {
    EngineConfig config = config_of("llama", "current", AttentionPrecision::fp8);
    config.ranks.tensor = ranks;
    std::vector<float> scales;
    comm::run_on_threads({.ranks = int(ranks), .limit_seconds = 30}, [&](comm::Communicator& c) {
      Engine e(config, Device::cpu, machine::machine_target(Device::cpu), &c);
      StepRunner runner = begin_steps(e);
      runner.run(std::vector{random_batch(2, 32, 61, 5)}, {.learning_rate = 1e-2, .measure = true}, [&] {
        const Readout shown = read_out(e);
        for (std::size_t i = 0; i < shown.health.size() && c.rank() == 0; ++i) {
          const scaling::Slot& slot = e.precision.slots().slots()[i];
          if (slot.path == "layers.0.attn.scores" && slot.operand <= scaling::Operand::v && slot.operand >= scaling::Operand::q)
            scales.insert(scales.end(), {shown.amax[i], shown.health[i].scale_min, shown.health[i].scale_max});
        }
      });
    });
    return scales;
  };
  const auto one = losses(1);
  ASSERT_EQ(one.size(), 9u);
  EXPECT_EQ(losses(2), one);
}

}  // namespace
}  // namespace octet::train
