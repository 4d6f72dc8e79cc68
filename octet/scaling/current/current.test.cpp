#include "octet/scaling/current/current.hpp"

#include <gtest/gtest.h>

#include "octet/scaling/recipe.testing.hpp"
#include "tests/testing/tensors.hpp"

// The definition: scale = max / amax with the largest value of the format (448, 57344) and the tensor's own maximum; 1 where that is 0 or
// infinite. Source: Transformer Engine, Float8CurrentScaling; OCP FP8 1.0 for the largest values.

namespace octet::scaling {
namespace {

using testing::Definition;
using testing::OneLayer;

Definition per_tensor(DType format) {
  const double largest = format == DType::e4m3 ? 448 : 57344;
  return {.format = format,
          .block_rows = 0,
          .block_cols = 0,
          .scale = [=](double amax) { return amax == 0 || std::isinf(amax) ? 1 : largest / amax; },
          .at = [](std::int64_t, std::int64_t) { return 0; }};
}

void expect_operands(const PrecisionConfig& config, DType gradient, testing::Values kind) {
  for (const Operand o : testing::operands) {
    OneLayer layer(config);
    const testing::Matrix m = OneLayer::values(o, kind, 2, o == Operand::gradient ? 1e-4 : 1);
    const QTensor q = quantized(layer.stream, layer.operand(o), m);
    const Definition d = per_tensor(o == Operand::gradient ? gradient : DType::e4m3);
    expect_defined(q.rows, m, d, std::string(name(o)));
    expect_defined(q.cols, m.transposed(), d, std::string(name(o)) + ", transposed");
    EXPECT_EQ(q.rows.descales.data, q.cols.descales.data) << "one scale for both orientations";
  }
}

TEST(Current, PlansOneScalePerTensorInHybridFormats) {
  OneLayer layer({.recipe = "current"});
  EXPECT_EQ(layer.row(),
            "x e4m3, w e4m3, dy e5m2; per-tensor scale from its own maximum; fast accumulation in forward on a GPU | recipe current");
  EXPECT_EQ(OneLayer({.recipe = "current", .options = {.format = "e4m3"}}).row().substr(0, 24), "x e4m3, w e4m3, dy e4m3;");
  EXPECT_EQ(layer.precision.calibration_passes(), 0) << "nothing comes from past steps";
  EXPECT_EQ(layer.precision.slots().size(), 3);
}

TEST(Current, EachTensorIsScaledByItsOwnMaximum) {
  expect_operands({.recipe = "current"}, DType::e5m2, testing::Values::finite);
  expect_operands({.recipe = "current", .options = {.format = "e4m3"}}, DType::e4m3, testing::Values::finite);
}

TEST(Current, ATensorWithAnInfinityHasScaleOne) { expect_operands({.recipe = "current"}, DType::e5m2, testing::Values::any); }

TEST(Current, ATensorOfZerosHasScaleOne) {
  OneLayer layer({.recipe = "current"});
  const testing::Matrix zeros{16, 32, std::vector<float>(512, 0.0f)};
  expect_defined(quantized(layer.stream, *layer.plan.x, zeros).rows, zeros, per_tensor(DType::e4m3), "zeros");
}

// The maximum counts within the step that sees it, so codes of one tensor do not depend on any before it.
TEST(Current, EarlierTensorsLeaveNoTrace) {
  OneLayer fresh({.recipe = "current"}), used({.recipe = "current"});
  const auto large = OneLayer::values(Operand::activation, testing::Values::finite, 3, 1000);
  const auto small = OneLayer::values(Operand::activation, testing::Values::finite, 4, 1e-3);
  (void)quantized(used.stream, *used.plan.x, large);
  used.end_step();
  const QTensor a = quantized(fresh.stream, *fresh.plan.x, small), b = quantized(used.stream, *used.plan.x, small);
  EXPECT_EQ(testing::bytes(a.rows.codes), testing::bytes(b.rows.codes));
  EXPECT_EQ(testing::bytes(a.rows.descales), testing::bytes(b.rows.descales));
}

}  // namespace
}  // namespace octet::scaling
