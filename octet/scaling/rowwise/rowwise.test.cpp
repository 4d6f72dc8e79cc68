#include "octet/scaling/rowwise/rowwise.hpp"

#include <gtest/gtest.h>

#include "octet/scaling/recipe.testing.hpp"

// The definition: each row of an operand, along the K of its GEMM, has the largest power of two that takes its maximum to at most 448.
// Source: torchao, float8 "rowwise", round_scales_to_power_of_2; OCP FP8 1.0 for E4M3.

namespace octet::scaling {
namespace {

using testing::Definition;
using testing::OneLayer;

const Definition per_row{
    .format = DType::e4m3,
    .block_rows = 1,
    .block_cols = 0,
    .scale = [](double amax) { return amax == 0 || std::isinf(amax) ? 1 : std::exp2(std::floor(std::log2(448 / amax))); },
    .at = [](std::int64_t i, std::int64_t) { return i; },
    .power_of_two = true};

TEST(Rowwise, PlansOneScalePerRowInE4m3) {
  OneLayer layer({.recipe = "rowwise"});
  EXPECT_EQ(layer.row(), "x e4m3, w e4m3, dy e4m3; per-row power-of-two scale; fast accumulation in forward on a GPU | recipe rowwise");
  EXPECT_EQ(layer.precision.calibration_passes(), 0);
}

// Rows of the transpose are columns: in the weight gradient each feature has a scale of its own.
TEST(Rowwise, RowsAndColumnsAreScaledByTheirOwnMaxima) {
  for (const testing::Values kind : {testing::Values::finite, testing::Values::any})
    for (const Operand o : testing::operands) {
      OneLayer layer({.recipe = "rowwise"});
      const testing::Matrix m = OneLayer::values(o, kind, 5, o == Operand::gradient ? 1e-4 : 1);
      const QTensor q = quantized(layer.stream, layer.operand(o), m);
      ASSERT_EQ(q.rows.descales.shape, Shape({m.rows}));
      ASSERT_EQ(q.cols.descales.shape, Shape({m.cols}));
      expect_defined(q.rows, m, per_row, std::string(name(o)));
      expect_defined(q.cols, m.transposed(), per_row, std::string(name(o)) + ", transposed");
    }
}

TEST(Rowwise, F32ScalesAreTheQuotientsOfTheMaxima) {
  Definition quotient = per_row;
  quotient.power_of_two = false, quotient.scale = [](double amax) { return amax == 0 || std::isinf(amax) ? 1 : 448 / amax; };
  for (const testing::Values kind : {testing::Values::finite, testing::Values::any})
    for (const Operand o : testing::operands) {
      OneLayer layer({.recipe = "rowwise", .options = {.scale = ScaleRounding::f32}});
      EXPECT_EQ(layer.row(), "x e4m3, w e4m3, dy e4m3; per-row FP32 scale; fast accumulation in forward on a GPU | recipe rowwise");
      const testing::Matrix m = OneLayer::values(o, kind, 5, o == Operand::gradient ? 1e-4 : 1);
      const QTensor q = quantized(layer.stream, layer.operand(o), m);
      expect_defined(q.rows, m, quotient, std::string(name(o)));
      expect_defined(q.cols, m.transposed(), quotient, std::string(name(o)) + ", transposed");
    }
}

// What the recipe is for: an outlier costs its own row precision and no other.
TEST(Rowwise, AnOutlierChangesItsOwnRowAlone) {
  OneLayer layer({.recipe = "rowwise"});
  testing::Matrix m = OneLayer::values(Operand::activation, testing::Values::finite, 6);
  const QTensor before = quantized(layer.stream, *layer.plan.x, m);
  m.x[std::size_t(7 * m.cols + 11)] = 30000;
  const QTensor after = quantized(layer.stream, *layer.plan.x, m);
  for (std::int64_t r = 0; r < m.rows; ++r) EXPECT_EQ(value_at(before.rows.descales, r) == value_at(after.rows.descales, r), r != 7) << r;
  for (std::int64_t c = 0; c < m.cols; ++c) EXPECT_EQ(value_at(before.cols.descales, c) == value_at(after.cols.descales, c), c != 11) << c;
}

}  // namespace
}  // namespace octet::scaling
