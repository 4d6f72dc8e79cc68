#include <gtest/gtest.h>

#include <cmath>

#include "octet/train/step/nonfinite.hpp"
#include "octet/train/step/readout.hpp"
#include "octet/train/step/small_model.testing.hpp"
#include "octet/train/study/twin.hpp"
#include "tests/testing/saved_state.hpp"

// Loss scaling in whole steps.

namespace octet::train {
namespace {

using namespace octet::train::testing;
using octet::testing::SavedState;
using Mode = optim::LossScaleConfig::Mode;

EngineConfig scaled_engine(const std::string& recipe, const optim::LossScaleConfig& scale) {
  EngineConfig config = small_engine("llama", recipe);
  config.loss_scale = scale;
  return config;
}

std::vector<float> weights_of(Engine& e) { return nn::flat_values(e.stream, e.parameters.values()); }

std::vector<float> weights_after(const EngineConfig& config, int steps) {
  Engine e(config, Device::cpu, machine::machine_target(Device::cpu));
  (void)train_steps(e, steps, 2);
  return weights_of(e);
}

// Every scale of an operand follows its maximum and every factor is a power of two, so all bits are those without a loss scale.
TEST(LossScaling, ChangesNoBitUnderRecipesWithAWideRange) {
  for (const char* recipe : {"fp32", "bf16", "current", "rowwise", "block128", "mxfp8"}) {
    const auto plain = weights_after(scaled_engine(recipe, {.mode = Mode::off}), 3);
    EXPECT_EQ(weights_after(scaled_engine(recipe, {.mode = Mode::fixed, .start = 0x1p12}), 3), plain) << recipe;
    EXPECT_EQ(weights_after(scaled_engine(recipe, {.mode = Mode::dynamic, .start = 0x1p8, .growth_steps = 1}), 3), plain) << recipe;
  }
}

double norm_of(const std::vector<float>& x) {
  double squares = 0;
  for (const float v : x) squares += double(v) * double(v);
  return std::sqrt(squares);
}

struct FirstStep {
  std::vector<float> gradients;
  Readout shown;
};
FirstStep first_step(const EngineConfig& config) {
  Engine e(config, Device::cpu, machine::machine_target(Device::cpu));
  FirstStep out;
  begin_steps(e).run(std::vector{random_batch(4, 32, 61, 1)}, {.learning_rate = 1e-3}, [&] {
    out.gradients = nn::flat_values(e.stream, e.parameters.gradients());
    out.shown = read_out(e);
  });
  return out;
}

// 128 tokens make gradients of logits of at most 2^-7. Under a scale of 2^-18 they are at most 2^-25, which rounds to 0.
TEST(LossScaling, GradientsBelow2ToTheMinus25AreLostWithoutItAndKeptWithIt) {
  const FirstStep lost = first_step(scaled_engine("fp16", {.mode = Mode::fixed, .start = 0x1p-18}));
  for (const float g : lost.gradients) ASSERT_EQ(g, 0);
  EXPECT_EQ(lost.shown.step.gradient_norm, 0);
  const FirstStep wide = first_step(scaled_engine("bf16", {.mode = Mode::fixed, .start = 0x1p-18}));
  const FirstStep kept = first_step(scaled_engine("fp16", {})), exact = first_step(scaled_engine("fp32", {}));
  EXPECT_EQ(kept.shown.loss_scale.now, 0x1p16f);
  // Twelve roundings of activations or gradients, each within 2^-11 of its value.
  EXPECT_NEAR(kept.shown.step.gradient_norm, exact.shown.step.gradient_norm, 12 * 0x1p-11 * double(exact.shown.step.gradient_norm));
  EXPECT_NEAR(wide.shown.step.gradient_norm, exact.shown.step.gradient_norm, 12 * 0x1p-8 * double(exact.shown.step.gradient_norm));
  EXPECT_NEAR(norm_of(kept.gradients) * 0x1p-16, double(kept.shown.step.gradient_norm), 1e-6 * double(kept.shown.step.gradient_norm));
}

// Gradients of logits are up to 2^24 / 128 = 2^17, beyond the largest FP16 number: steps are skipped until the scale fits.
TEST(LossScaling, AnInfiniteGradientSkipsTheStepAndHalvesTheScale) {
  Engine e(scaled_engine("fp16", {.start = 0x1p24, .growth_steps = 3}), Device::cpu, machine::machine_target(Device::cpu));
  StepRunner runner = begin_steps(e);
  const std::vector batches{random_batch(4, 32, 61, 1)};
  std::vector<float> before = weights_of(e), scales;
  int skipped = 0;
  for (int s = 0; s < 12; ++s) {
    Readout shown;
    std::string path;
    runner.run(batches, {.learning_rate = 1e-3}, [&] {
      shown = read_out(e);
      if (shown.step.skip != 0) path = first_nonfinite(e, batches);
    });
    const std::vector<float> after = weights_of(e);
    EXPECT_EQ(after == before, shown.step.skip != 0) << s;
    if (shown.step.skip != 0) {
      ++skipped;
      EXPECT_TRUE(path.ends_with(".dx")) << path;
      EXPECT_EQ(shown.loss_scale.next, shown.loss_scale.now / 2) << s;
      EXPECT_TRUE(std::isfinite(shown.loss)) << "forward is not scaled";
    }
    EXPECT_EQ(*e.loss_scale->scale().f32(), shown.loss_scale.next);
    before = after, scales.push_back(shown.loss_scale.now);
  }
  EXPECT_GE(skipped, 2);
  EXPECT_EQ(scales[0], 0x1p24f);
  EXPECT_EQ(scales[1], 0x1p23f);
  EXPECT_GE(std::count(scales.begin(), scales.end(), scales.back()), 1);
}

TEST(LossScaling, AnOverflowIsFoundInGradientsOfEveryStorage) {
  for (const Storage storage : {Storage::f32, Storage::bf16, Storage::e4m3, Storage::e4m3_tensor}) {
    EngineConfig config = scaled_engine("fp16", {.start = 0x1p24});
    config.optimizer->gradients = storage;
    const Readout shown = first_step(config).shown;
    EXPECT_NE(shown.step.skip, 0) << name(storage);
    EXPECT_EQ(shown.loss_scale.next, 0x1p23f) << name(storage);
  }
}

TEST(LossScaling, ScaleAndGoodStepsContinueFromACheckpointBitForBit) {
  const EngineConfig config = scaled_engine("fp16", {.start = 0x1p24, .growth_steps = 2});
  const auto batch = [](int s) { return std::vector{random_batch(4, 32, 61, std::uint64_t(s))}; };
  Engine whole(config, Device::cpu, machine::machine_target(Device::cpu)), first(config, Device::cpu, machine::machine_target(Device::cpu)),
      second(config, Device::cpu, machine::machine_target(Device::cpu));
  StepRunner uninterrupted = begin_steps(whole), begun = begin_steps(first);
  for (int s = 0; s < 9; ++s) uninterrupted.run(batch(s), {.learning_rate = 1e-3});
  for (int s = 0; s < 5; ++s) begun.run(batch(s), {.learning_rate = 1e-3});
  SavedState::of(first).restore(second);
  StepRunner resumed(second);
  for (int s = 5; s < 9; ++s) resumed.run(batch(s), {.learning_rate = 1e-3});
  EXPECT_EQ(weights_of(second), weights_of(whole));
  EXPECT_EQ(SavedState::of(*second.loss_scale), SavedState::of(*whole.loss_scale));
  EXPECT_NE(*whole.loss_scale->scale().f32(), 0x1p24f) << "it moved";
}

double loss_after(const std::string& recipe, int twin, int steps) {
  Engine e(small_engine("llama", recipe), Device::cpu, machine::machine_target(Device::cpu));
  e.parameters.initialize(e.stream, 7);
  if (twin > 0) nudge(e.stream, e.parameters, 7, twin);
  StepRunner runner(e);
  double loss = 0;
  for (int s = 0; s < steps; ++s)  // the same two batches again and again, which are learned by heart
    runner.run(std::vector{random_batch(4, 32, 61, std::uint64_t(s % 2))}, {.learning_rate = 3e-3},
               [&] { loss = double(read<float>(e.stream, e.mean_loss())); });
  return loss;
}

// The distance to BF16 of a run whose weights differ in their last bit is what rounding alone does.
TEST(LossScaling, Fp16LearnsAsBf16DoesWithinItsTwins) {
  constexpr int steps = 40, twins = 4;
  const double bf16 = loss_after("bf16", 0, steps), fp16 = loss_after("fp16", 0, steps), fp32 = loss_after("fp32", 0, steps);
  double squares = 0;
  for (int t = 1; t <= twins; ++t) squares += std::pow(loss_after("bf16", t, steps) - bf16, 2);
  const double deviation = std::sqrt(squares / twins);
  EXPECT_LT(bf16, 0.5 * std::log(61.0)) << "it learned";
  EXPECT_LE(std::fabs(fp16 - bf16), 4 * deviation) << fp16 << " " << bf16;
  EXPECT_LE(std::fabs(fp16 - fp32), 4 * deviation) << fp16 << " " << fp32;
}

// Shares of a step's gradients that 8-bit codes clip or flush, the worst layer's.
double worst_loss_of_gradients(const EngineConfig& config) {
  Engine e(config, Device::cpu, machine::machine_target(Device::cpu));
  StepRunner runner = train_steps(e, 2);
  double worst = 0;
  runner.run(std::vector{random_batch(4, 32, 61, 9)}, {.learning_rate = 1e-3, .measure = true}, [&] {
    const scaling::SlotTable& slots = e.precision.slots();
    for (int i = 0; i < slots.size(); ++i) {
      if (slots.slots()[std::size_t(i)].operand != scaling::Operand::gradient) continue;
      const ops::QuantizeHealth& h = *slots.health(i);
      worst = std::max(worst, double(h.saturated + h.flushed) / double(h.values));
    }
  });
  return worst;
}

// A loss scale moves all layers together: what one of them needs, another clips or flushes.
TEST(LossScaling, NoScaleOfTheLossKeepsWhatScalesPerTensorKeep) {
  double best = 1;
  for (int e = -8; e <= 24; e += 2) {
    EngineConfig config = scaled_engine("global", {.mode = Mode::fixed, .start = std::ldexp(1.0, e)});
    config.precision.options.unscaled = true;
    const double lost = worst_loss_of_gradients(config);
    best = std::min(best, lost);
  }
  const double current = worst_loss_of_gradients(scaled_engine("current", {.mode = Mode::off}));
  EXPECT_GT(best, 10 * current);
}

}  // namespace
}  // namespace octet::train
