#include "octet/ops/loss_scale/loss_scale.hpp"

#include <gtest/gtest.h>

#include "octet/ops/adamw/adamw.hpp"
#include "tests/testing/tensors.hpp"

namespace octet::ops {
namespace {

struct Steps {
  Stream stream{Device::cpu};
  LossScale args;
  Steps(float scale, const LossScaleRule& rule) : args{stream.zeros({loss_scale_floats}, DType::f32), stream.zeros({1}, DType::f32), rule} {
    state().scale = scale;
  }
  LossScaleState& state() { return *args.state.as<LossScaleState>(); }
  /// The scale after steps of which "x" are skipped, "l" are skipped because of a limit, and "." are good.
  float after(std::string_view steps) {
    for (const char step : steps) {
      *args.skip.f32() = step == 'x' ? adamw_skip_nonfinite : step == 'l' ? adamw_skip_limit : 0;
      move_loss_scale(stream, args);
    }
    return state().scale;
  }
};

TEST(LossScale, GrowsAfterGoodStepsInARowAlone) {
  Steps run(0x1p16f, {.growth_steps = 3});
  EXPECT_EQ(run.after(".."), 0x1p16f);
  EXPECT_EQ(run.after("."), 0x1p17f);
  EXPECT_EQ(run.after(".."), 0x1p17f) << "counted from the last move on";
  EXPECT_EQ(run.after("x"), 0x1p16f);
  EXPECT_EQ(run.state().good_steps, 0);
  EXPECT_EQ(run.after("..x..x.."), 0x1p14f) << "a skipped step begins the count again";
  EXPECT_EQ(run.after("."), 0x1p15f);
}

TEST(LossScale, IsAsBeforeAfterAStepBeyondALimit) {
  Steps run(0x1p16f, {.growth_steps = 3});
  EXPECT_EQ(run.after("..ll"), 0x1p16f);
  EXPECT_EQ(run.after("."), 0x1p17f) << "the good steps before it count";
}

TEST(LossScale, StaysWithinItsBounds) {
  Steps run(4, {.growth_steps = 1, .smallest = 2, .largest = 8});
  EXPECT_EQ(run.after("xxx"), 2);
  EXPECT_EQ(run.after("....."), 8);
  Steps beyond(0x1p10f, {.growth = 16, .backoff = 0x1p-6f, .growth_steps = 1, .smallest = 0x1p8f, .largest = 0x1p12f});
  EXPECT_EQ(beyond.after("."), 0x1p12f) << "a factor that passes a bound ends on it";
  EXPECT_EQ(beyond.after("x"), 0x1p8f);
}

TEST(LossScale, NeverGrowsWithoutGrowthSteps) {
  Steps run(16, {.growth_steps = 0});
  EXPECT_EQ(run.after("........"), 16);
  EXPECT_EQ(run.after("x"), 8);
}

// 2^16 doubled after 2,000 good steps and halved after a skipped one: the numbers of torch.amp.GradScaler's documentation.
TEST(LossScale, MovesByDefaultAsTorchsGradScaler) {
  Steps run(0x1p16f, {});
  EXPECT_EQ(run.after(std::string(1999, '.')), 0x1p16f);
  EXPECT_EQ(run.after("."), 0x1p17f);
  EXPECT_EQ(run.after("x"), 0x1p16f);
}

TEST(LossScale, DryRunNeedsTheSameMemory) {
  testing::expect_dry_run_agrees(
      [](Stream& s) { move_loss_scale(s, {.state = s.zeros({loss_scale_floats}, DType::f32), .skip = s.zeros({1}, DType::f32)}); });
}

TEST(LossScale, RefusesTensorsThatDoNotFit) {
  Stream s(Device::null);
  const Tensor state = s.empty({loss_scale_floats}, DType::f32), skip = s.empty({1}, DType::f32);
  EXPECT_THROW(move_loss_scale(s, {.state = skip, .skip = skip}), ContractError);
  EXPECT_THROW(move_loss_scale(s, {.state = state, .skip = state}), ContractError);
  EXPECT_THROW(move_loss_scale(s, {.state = state, .skip = {}}), ContractError);
}

}  // namespace
}  // namespace octet::ops
