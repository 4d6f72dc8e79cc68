#include "octet/scaling/global/global.hpp"

#include <gtest/gtest.h>

#include "octet/scaling/recipe.testing.hpp"
#include "tests/testing/saved_state.hpp"

// The definition: every tensor of a step is encoded under 448 / m, where m is the largest magnitude that the step before showed anywhere.

namespace octet::scaling {
namespace {

using testing::Matrix;
using testing::OneLayer;
using testing::SavedState;

constexpr double magnitudes[] = {1, 20, 0.5, 0.5, 7};

/// The gradient's values are as small as gradients are.
Matrix values_of(Operand o, std::size_t step) {
  return OneLayer::values(o, testing::Values::finite, unsigned(10 * step + std::size_t(o)),
                          magnitudes[step] * (o == Operand::gradient ? 1e-5 : 1));
}

float scale_of(const OneLayer& layer, Operand o) { return *layer.operand(o).spec({}).scale.f32(); }

void run_step(OneLayer& layer, std::size_t step, bool skipped = false) {
  for (const Operand o : testing::operands) (void)quantized(layer.stream, layer.operand(o), values_of(o, step));
  layer.end_step(skipped);
}

TEST(Global, PlansE4m3ForEveryOperand) {
  OneLayer layer({.recipe = "global"});
  EXPECT_EQ(layer.row(), "x e4m3, w e4m3, dy e4m3; one scale for the whole model; fast accumulation in forward on a GPU | recipe global");
  EXPECT_EQ(layer.precision.calibration_passes(), 3);
  EXPECT_EQ(layer.precision.slots().history().shape, Shape({1, 3})) << "the last step alone";
}

TEST(Global, UnscaledCodesArePlainCastsInEveryStep) {
  OneLayer layer({.recipe = "global", .options = {.unscaled = true}});
  EXPECT_EQ(layer.row(), "x e4m3, w e4m3, dy e4m3; not scaled; fast accumulation in forward on a GPU | recipe global");
  EXPECT_EQ(layer.precision.calibration_passes(), 0);
  for (std::size_t step = 0; step < std::size(magnitudes); ++step) {
    run_step(layer, step);
    for (const Operand o : testing::operands) EXPECT_EQ(scale_of(layer, o), 1) << name(o);
  }
}

TEST(Global, OneScaleFollowsTheLargestMagnitudeOfTheLastStep) {
  OneLayer layer({.recipe = "global"});
  double scale = 1;
  for (std::size_t step = 0; step < std::size(magnitudes); ++step) {
    double most = 0;
    for (const Operand o : testing::operands) {
      const Matrix m = values_of(o, step);
      const QTensor q = quantized(layer.stream, layer.operand(o), m);
      expect_defined(q.rows, m,
                     {.format = DType::e4m3,
                      .block_rows = 0,
                      .block_cols = 0,
                      .scale = [=](double) { return scale; },
                      .at = [](auto, auto) { return 0; }},
                     std::string(name(o)) + " in step " + std::to_string(step));
      most = std::max(most, m.amax());
    }
    layer.end_step();
    scale = 448 / most;
    for (const Operand o : testing::operands) EXPECT_NEAR(scale_of(layer, o), scale, scale * 0x1p-23) << name(o) << " after " << step;
  }
}

// Why the recipe is a strawman: under the scale of activations, most gradients are below half of E4M3's least number.
TEST(Global, SmallGradientsBecomeZero) {
  OneLayer layer({.recipe = "global"});
  run_step(layer, 0);
  const Matrix m = values_of(Operand::gradient, 0);
  const QTensor q = quantized(layer.stream, *layer.plan.dy, m);
  std::int64_t zero = 0, nonzero = 0;
  for (std::int64_t i = 0; i < q.rows.codes.count(); ++i)
    if (m.x[std::size_t(i)] != 0) ++((q.rows.codes.u8()[i] & 0x7F) == 0 ? zero : nonzero);
  EXPECT_GT(zero, 10 * nonzero);
}

TEST(Global, ASkippedStepChangesNoState) {
  OneLayer layer({.recipe = "global"});
  run_step(layer, 0);
  const auto before = SavedState::of(layer.precision);
  run_step(layer, 1, true);
  EXPECT_TRUE(before == SavedState::of(layer.precision));
  run_step(layer, 1);
  EXPECT_FALSE(before == SavedState::of(layer.precision));
}

TEST(Global, ARestoredRunHasTheSameScale) {
  OneLayer whole({.recipe = "global"}), resumed({.recipe = "global"});
  run_step(whole, 1);
  SavedState::of(whole.precision).restore(resumed.precision);
  for (const Operand o : testing::operands) EXPECT_EQ(scale_of(whole, o), scale_of(resumed, o)) << name(o);
  EXPECT_NE(scale_of(resumed, Operand::weight), 1);
}

}  // namespace
}  // namespace octet::scaling
