#include "octet/scaling/none/none.hpp"

#include <gtest/gtest.h>

#include "octet/scaling/recipe.testing.hpp"
#include "tests/testing/tensors.hpp"

namespace octet::scaling {
namespace {

using testing::OneLayer;

TEST(None, PlansTheTypeItselfForEveryOperand) {
  OneLayer bf16({.recipe = "bf16"}), fp32({.recipe = "fp32"}), fp16({.recipe = "fp16"});
  EXPECT_EQ(fp16.row(), "f16 | recipe fp16");
  EXPECT_EQ(fp16.operand(Operand::gradient).spec({}).format, DType::f16);
  EXPECT_EQ(fp16.precision.activations(), DType::f16);
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
  for (const char* recipe : {"bf16", "fp16", "fp32"}) {
    OneLayer layer({.recipe = recipe});
    EXPECT_EQ(layer.precision.slots().size(), 0) << recipe;
    EXPECT_EQ(layer.precision.calibration_passes(), 0) << recipe;
    EXPECT_FALSE(bool(layer.plan.x->spec({.kind = Pass::Kind::train}).amax)) << recipe;
    layer.end_step();
  }
}

TEST(None, ThePlanListsThePrecisionOfEveryOpUnderFp16) {
  const Precision precision({.recipe = "fp16"});
  std::string rows;
  for (const PlanRow& row : precision.rows()) rows += row.path + ": " + row.precision + "\n";
  EXPECT_EQ(rows,
            "embedding: f16\n"
            "norm statistics, softmax, loss: f32\n"
            "norms, attention, activation functions, residual sums: f16\n"
            "logits, gradients of activations: f16\n");
}

TEST(None, RefusesFp16BesideRecipesWithOtherActivations) {
  EXPECT_THROW(Precision({.recipe = "fp16", .rules = {{.path = "*", .recipe = "current"}}}), ConfigError);
  EXPECT_THROW(Precision({.recipe = "bf16", .rules = {{.path = "*", .recipe = "fp16"}}}), ConfigError);
}

TEST(None, RunsWidthsThatEightBitGemmsDoNot) {
  Precision precision({.recipe = "bf16"});
  EXPECT_EQ(precision.plan({.path = "odd", .out = 7, .in = 13}).precision, "bf16");
  EXPECT_EQ(precision.rows().back().why, "recipe bf16") << "no exemption";
}

// Both orientations of an operand are views of the values, which stay as they are, whatever they are.
TEST(None, OperandsAreTheValuesThemselves) {
  for (const char* recipe : {"bf16", "fp16", "fp32"})
    for (const Operand o : testing::operands) {
      OneLayer layer({.recipe = recipe});
      const testing::Matrix m = OneLayer::values(o, testing::Values::any);
      const DType type = layer.precision.activations();
      const Tensor x = layer.stream.empty({m.rows, m.cols}, type);
      for (std::size_t i = 0; i < m.x.size(); ++i) octet::testing::put(x, std::int64_t(i), m.x[i]);
      const ops::Sink sink = ops::make_sink(layer.stream, layer.operand(o).spec({}),
                                            {.shape = x.shape, .dtype = type, .rows = true, .cols = true, .plain = x});
      EXPECT_EQ(sink.codes.rows.codes.data, x.data) << recipe;
      EXPECT_TRUE(sink.codes.one_matrix()) << recipe;
      EXPECT_FALSE(bool(sink.codes.rows.descales)) << recipe;
      for (std::int64_t r = 0; r < m.rows; ++r)
        for (std::int64_t c = 0; c < m.cols; ++c) {
          const float wanted = type == DType::f16 ? octet::testing::rounded(m.at(r, c), type) : m.at(r, c);
          ASSERT_EQ(bits_of(value_at(sink.codes.rows, r, c)), bits_of(wanted));
          ASSERT_EQ(bits_of(value_at(sink.codes.cols, c, r)), bits_of(wanted));
        }
    }
}

}  // namespace
}  // namespace octet::scaling
