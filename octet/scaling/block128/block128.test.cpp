#include "octet/scaling/block128/block128.hpp"

#include <gtest/gtest.h>

#include "octet/scaling/recipe.testing.hpp"

// The definition: activations and their gradients in tiles of 1x128 along K, weights in blocks of 128x128; every scale is the largest power
// of two that takes the tile's maximum to at most 448; all of E4M3. Source: DeepSeek-V3, section 3.3.2, and 3.3.3 for powers of two.

namespace octet::scaling {
namespace {

using testing::Definition;
using testing::OneLayer;

double power_of_two_below(double amax) { return amax == 0 || std::isinf(amax) ? 1 : std::exp2(std::floor(std::log2(448 / amax))); }

/// Descales of tiles are stored with K outermost, rows up to a multiple of 4.
Definition tiles(std::int64_t rows) {
  return {.format = DType::e4m3,
          .block_rows = 1,
          .block_cols = 128,
          .scale = power_of_two_below,
          .at = [=](std::int64_t i, std::int64_t j) { return j * ((rows + 3) / 4 * 4) + i; },
          .power_of_two = true};
}
/// Descales of blocks are stored with K innermost, up to a multiple of 4: here 2 or 3 blocks.
const Definition squares{.format = DType::e4m3,
                         .block_rows = 128,
                         .block_cols = 128,
                         .scale = power_of_two_below,
                         .at = [](std::int64_t i, std::int64_t j) { return i * 4 + j; },
                         .power_of_two = true};

TEST(Block128, PlansTilesForValuesAndSquaresForWeights) {
  OneLayer layer({.recipe = "block128"});
  EXPECT_EQ(layer.row(), "x e4m3, w e4m3, dy e4m3; x and dy 1x128, w 128x128, power-of-two scales | recipe block128");
  EXPECT_FALSE(layer.plan.fast_forward) << "sums are promoted every 128 products";
  EXPECT_EQ(layer.precision.calibration_passes(), 0);
}

TEST(Block128, ValuesAreScaledInTilesAlongEitherK) {
  for (const testing::Values kind : {testing::Values::finite, testing::Values::any})
    for (const Operand o : {Operand::activation, Operand::gradient}) {
      OneLayer layer({.recipe = "block128"});
      const testing::Matrix m = OneLayer::values(o, kind, 7, o == Operand::gradient ? 1e-4 : 1);
      const QTensor q = quantized(layer.stream, layer.operand(o), m);
      expect_defined(q.rows, m, tiles(m.rows), std::string(name(o)));
      expect_defined(q.cols, m.transposed(), tiles(m.cols), std::string(name(o)) + ", transposed");
    }
}

TEST(Block128, WeightsAreScaledInSquaresAlikeInBothOrientations) {
  for (const testing::Values kind : {testing::Values::finite, testing::Values::any}) {
    OneLayer layer({.recipe = "block128"});
    const testing::Matrix m = OneLayer::values(Operand::weight, kind, 8, 0.02);
    const QTensor q = quantized(layer.stream, *layer.plan.w, m);
    expect_defined(q.rows, m, squares, "w");
    expect_defined(q.cols, m.transposed(), squares, "w, transposed");
    for (std::int64_t r = 0; r < m.rows; ++r)
      for (std::int64_t c = 0; c < m.cols; ++c)
        ASSERT_EQ(q.rows.codes.u8()[r * m.cols + c], q.cols.codes.u8()[c * m.rows + r]) << r << ", " << c;
  }
}

// As servers compute them: max |x| / 448, here with the reciprocals of training.
TEST(Block128, F32ScalesAreTheQuotientsOfTheMaxima) {
  const auto quotient = [](double amax) { return amax == 0 || std::isinf(amax) ? 1 : 448 / amax; };
  for (const testing::Values kind : {testing::Values::finite, testing::Values::any})
    for (const Operand o : testing::operands) {
      OneLayer layer({.recipe = "block128", .options = {.scale = ScaleRounding::f32}});
      EXPECT_EQ(layer.row(), "x e4m3, w e4m3, dy e4m3; x and dy 1x128, w 128x128, FP32 scales | recipe block128");
      const testing::Matrix m = OneLayer::values(o, kind, 7, o == Operand::gradient ? 1e-4 : 1);
      const QTensor q = quantized(layer.stream, layer.operand(o), m);
      const auto defined = [&](std::int64_t rows) {
        Definition d = o == Operand::weight ? squares : tiles(rows);
        d.scale = quotient, d.power_of_two = false;
        return d;
      };
      expect_defined(q.rows, m, defined(m.rows), std::string(name(o)));
      expect_defined(q.cols, m.transposed(), defined(m.cols), std::string(name(o)) + ", transposed");
    }
}

TEST(Block128, E5m2GradientsAreAnOption) {
  OneLayer layer({.recipe = "block128", .options = {.format = "hybrid"}});
  EXPECT_EQ(layer.plan.x->spec({}).format, DType::e4m3);
  EXPECT_EQ(layer.plan.dy->spec({}).format, DType::e5m2);
}

}  // namespace
}  // namespace octet::scaling
