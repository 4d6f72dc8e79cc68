#include "octet/ops/clip/clip.hpp"

#include <gtest/gtest.h>

#include "tests/testing/tensors.hpp"

namespace octet::ops {
namespace {

struct Case {
  Stream stream{Device::cpu};
  Clip args;
  explicit Case(double sum_of_squares, float max_norm = 1) {
    args = {.sum_of_squares = stream.empty({1}, DType::f64),
            .step = stream.empty({adamw_step_floats}, DType::f32),
            .max_norm = max_norm,
            .beta1 = 0.5,
            .beta2 = 0.75};
    *args.sum_of_squares.as<double>() = sum_of_squares;
    *args.step.as<AdamWStep>() = {.learning_rate = 0.5f,
                                  .bias_correction1 = NAN,
                                  .bias_correction2 = NAN,
                                  .gradient_scale = NAN,
                                  .skip = NAN,
                                  .power1 = 0.5,
                                  .power2 = 0.25};
  }
  AdamWStep run() {
    clip(stream, args);
    return *args.step.as<AdamWStep>();
  }
};

TEST(Clip, ScalesDownANormAboveTheLimitAlone) {
  EXPECT_EQ(Case(16).run().gradient_scale, 0.25f);
  EXPECT_EQ(Case(16, 2).run().gradient_scale, 0.5f);
  EXPECT_EQ(Case(16, 4).run().gradient_scale, 1);
  EXPECT_EQ(Case(0.25).run().gradient_scale, 1);
  EXPECT_EQ(Case(0).run().gradient_scale, 1);
  EXPECT_EQ(Case(16, 0).run().gradient_scale, 1);
  EXPECT_EQ(Case(16, INFINITY).run().gradient_scale, 1);
}

TEST(Clip, WritesNormAndSkipAndCountsAnAppliedStepAndLeavesWhatTheScheduleWrote) {
  const AdamWStep step = Case(16).run();
  EXPECT_EQ(step.gradient_norm, 4);
  EXPECT_EQ(step.skip, 0);
  EXPECT_EQ(step.learning_rate, 0.5f);
  EXPECT_EQ(step.bias_correction1, float(1 / 0.75));
  EXPECT_EQ(step.bias_correction2, float(1 / 0.8125));
  EXPECT_EQ(step.power1, 0.25);
  EXPECT_EQ(step.power2, 0.1875);
  const AdamWStep skipped = Case(INFINITY).run();
  EXPECT_EQ(skipped.skip, 1);
  EXPECT_EQ(skipped.power1, 0.5);
  EXPECT_EQ(skipped.power2, 0.25);
}

TEST(Clip, SkipsAStepWhoseLossOrNormIsAboveItsLimit) {
  const auto skip_of = [](float loss, float loss_limit, float norm_limit) {
    Case c(16);
    c.args.loss = c.stream.empty({1}, DType::f32), c.args.limits = c.stream.empty({2}, DType::f32);
    *c.args.loss.f32() = loss, c.args.limits.f32()[0] = loss_limit, c.args.limits.f32()[1] = norm_limit;
    const AdamWStep step = c.run();
    if (step.skip != 0) EXPECT_TRUE(step.gradient_scale == 0 && step.power1 == 0.5 && step.updates == 0);
    return step.skip;
  };
  EXPECT_EQ(skip_of(3, INFINITY, INFINITY), 0);
  EXPECT_EQ(skip_of(3, 3, 4), 0) << "a limit is not above itself";
  EXPECT_EQ(skip_of(3, 2.9f, INFINITY), adamw_skip_limit);
  EXPECT_EQ(skip_of(3, INFINITY, 3.9f), adamw_skip_limit);
  EXPECT_EQ(skip_of(NAN, 2, 2), adamw_skip_nonfinite) << "that is the reason which counts";
}

TEST(Clip, AnUpdateThatCouldNotBeFiniteIsSkipped) {
  const double beyond = 0x1p127;  // the square of a norm of 2^63.5, whose own square is no FP32 number with room
  EXPECT_EQ(Case(beyond, 0).run().skip, 1);
  EXPECT_EQ(Case(beyond, 1).run().skip, 0) << "clipped, it is small";
  EXPECT_EQ(Case(beyond / 4, 0).run().skip, 0);
  Case endless(1);
  endless.args.step.as<AdamWStep>()->learning_rate = INFINITY;
  EXPECT_EQ(endless.run().skip, 1);
}

TEST(Clip, TheClippedNormIsNeverAboveTheLimitButForRounding) {
  for (const double norm : {1.0000001, 1.5, 3.0, 1e10, 1e30}) {
    const double clipped = norm * double(Case(norm * norm, 0.7f).run().gradient_scale);
    EXPECT_NEAR(clipped, double(0.7f), testing::unit_f32 * 0.7 * 1.001) << norm;
  }
}

TEST(Clip, UnscalesBeforeItClips) {
  Case small(4096.0), large(4096.0 * 4096);  // with 1/64: norms of 1 and 64
  small.args.gradient_factor = testing::tensor_of(small.stream, {0x1p-6f}, {1});
  large.args.gradient_factor = testing::tensor_of(large.stream, {4}, {1});
  large.args.loss_scale = testing::tensor_of(large.stream, {0x1p8f}, {1});
  const AdamWStep a = small.run(), b = large.run();
  EXPECT_EQ(a.gradient_scale, 0x1p-6f);
  EXPECT_EQ(a.gradient_norm, 1);
  EXPECT_EQ(b.gradient_scale, 0x1p-12f);
  EXPECT_EQ(b.gradient_norm, 64);
}

TEST(Clip, SkipsWhenAnythingIsNotFinite) {
  for (const double sum : {double(NAN), double(INFINITY)}) {
    const AdamWStep step = Case(sum).run();
    EXPECT_EQ(step.skip, 1);
    EXPECT_EQ(step.gradient_scale, 0);
  }
  for (const float loss : {NAN, INFINITY, -INFINITY}) {
    Case c(1);
    c.args.loss = testing::tensor_of(c.stream, {2, loss}, {2});
    EXPECT_EQ(c.run().skip, 1);
  }
  for (const std::int64_t count : {0, 1, 5}) {
    Case c(1);
    c.args.loss = testing::tensor_of(c.stream, {2, 3e38f}, {2});
    c.args.nonfinite = c.stream.zeros({3}, DType::i64);
    c.args.nonfinite.as<std::int64_t>()[1] = count;
    EXPECT_EQ(c.run().skip, count > 0 ? 1 : 0);
  }
}

TEST(Clip, DryRunNeedsTheSameMemory) {
  testing::expect_dry_run_agrees([](Stream& s) {
    clip(s, {.sum_of_squares = s.zeros({1}, DType::f64), .step = s.zeros({adamw_step_floats}, DType::f32), .max_norm = 1});
  });
}

TEST(Clip, RefusesTensorsThatDoNotFit) {
  Stream s(Device::null);
  const Tensor sum = s.empty({1}, DType::f64), step = s.empty({adamw_step_floats}, DType::f32);
  EXPECT_THROW(clip(s, {.sum_of_squares = step, .step = step}), ContractError);
  EXPECT_THROW(clip(s, {.sum_of_squares = sum, .step = sum}), ContractError);
  EXPECT_THROW(clip(s, {.sum_of_squares = sum, .step = step, .max_norm = -1}), ContractError);
  EXPECT_THROW(clip(s, {.sum_of_squares = sum, .step = step, .max_norm = NAN}), ContractError);
  EXPECT_THROW(clip(s, {.sum_of_squares = sum, .step = step, .loss = sum}), ContractError);
  EXPECT_THROW(clip(s, {.sum_of_squares = sum, .step = step, .nonfinite = step}), ContractError);
  EXPECT_THROW(clip(s, {.sum_of_squares = sum, .step = step, .gradient_factor = step}), ContractError);
  EXPECT_THROW(clip(s, {.sum_of_squares = sum, .step = step, .loss_scale = sum}), ContractError);
}

// Gradients that are twice as large under twice the loss scale make the same step, bit by bit.
TEST(Clip, TheLossScaleChangesNothingButTheFactorOfTheStoredGradient) {
  for (const float max_norm : {0.0f, 0.3f, 5.0f}) {
    Case plain(0.7, max_norm), scaled(0.7 * 0x1p32, max_norm);
    scaled.args.loss_scale = testing::tensor_of(scaled.stream, {0x1p16f}, {1});
    const AdamWStep a = plain.run(), b = scaled.run();
    EXPECT_EQ(a.gradient_norm, b.gradient_norm);
    EXPECT_EQ(a.gradient_scale, b.gradient_scale * 0x1p16f);
    EXPECT_EQ(a.bias_correction1, b.bias_correction1);
  }
}

}  // namespace
}  // namespace octet::ops
