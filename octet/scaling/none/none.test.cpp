#include "octet/scaling/none/none.hpp"

#include <gtest/gtest.h>

#include "octet/scaling/recipe.testing.hpp"

namespace octet::scaling {
namespace {

using testing::OneLayer;

TEST(None, PlansTheTypeItselfForEveryOperand) {
  OneLayer bf16({.recipe = "bf16"}), fp32({.recipe = "fp32"});
  EXPECT_EQ(bf16.row(), "bf16 | recipe bf16");
  EXPECT_EQ(fp32.row(), "f32 | recipe fp32");
  for (const Operand o : testing::operands) {
    EXPECT_EQ(bf16.operand(o).spec({}).format, DType::bf16);
    EXPECT_EQ(fp32.operand(o).spec({}).format, DType::f32);
    EXPECT_FALSE(bf16.operand(o).spec({}).quantizes());
  }
  EXPECT_EQ(bf16.precision.activations(), DType::bf16);
  EXPECT_EQ(fp32.precision.activations(), DType::f32);
}

TEST(None, MeasuresNothingAndHasNoState) {
  for (const char* recipe : {"bf16", "fp32"}) {
    OneLayer layer({.recipe = recipe});
    EXPECT_EQ(layer.precision.slots().size(), 0) << recipe;
    EXPECT_EQ(layer.precision.calibration_passes(), 0) << recipe;
    EXPECT_FALSE(bool(layer.plan.x->spec({.kind = Pass::Kind::train}).amax)) << recipe;
    layer.end_step();
  }
}

TEST(None, RunsWidthsThatEightBitGemmsDoNot) {
  Precision precision({.recipe = "bf16"});
  EXPECT_EQ(precision.plan({.path = "odd", .out = 7, .in = 13}).precision, "bf16");
  EXPECT_EQ(precision.rows().back().why, "recipe bf16") << "no exemption";
}

// Both orientations of an operand are views of the values, which stay as they are, whatever they are.
TEST(None, OperandsAreTheValuesThemselves) {
  for (const char* recipe : {"bf16", "fp32"})
    for (const Operand o : testing::operands) {
      OneLayer layer({.recipe = recipe});
      const testing::Matrix m = OneLayer::values(o, testing::Values::any);
      const DType type = layer.precision.activations();
      const Tensor x = layer.stream.empty({m.rows, m.cols}, type);
      for (std::size_t i = 0; i < m.x.size(); ++i) {
        if (type == DType::f32) x.f32()[i] = m.x[i];
        else x.bf16()[i] = to_bf16(m.x[i]);
      }
      const ops::Sink sink = ops::make_sink(layer.stream, layer.operand(o).spec({}),
                                            {.shape = x.shape, .dtype = type, .rows = true, .cols = true, .plain = x});
      EXPECT_EQ(sink.codes.rows.codes.data, x.data) << recipe;
      EXPECT_TRUE(sink.codes.one_matrix()) << recipe;
      EXPECT_FALSE(bool(sink.codes.rows.descales)) << recipe;
      for (std::int64_t r = 0; r < m.rows; ++r)
        for (std::int64_t c = 0; c < m.cols; ++c) {
          ASSERT_EQ(bits_of(value_at(sink.codes.rows, r, c)), bits_of(m.at(r, c)));
          ASSERT_EQ(bits_of(value_at(sink.codes.cols, c, r)), bits_of(m.at(r, c)));
        }
    }
}

}  // namespace
}  // namespace octet::scaling
