#include "octet/scaling/attention_plan.hpp"

#include <gtest/gtest.h>

#include "octet/scaling/precision.hpp"
#include "tests/testing/scratch.hpp"

namespace octet::scaling {
namespace {

constexpr AttentionPrecision fp8 = AttentionPrecision::fp8, forward_alone = AttentionPrecision::fp8_forward;

Site attention_of(int layer) { return {.path = format("layers.{}.attn.scores", layer), .layer = layer, .layers = 4}; }

std::string row_of(const PrecisionConfig& config, int layer = 1) {
  Precision p(config);
  p.plan_attention(attention_of(layer));
  const PlanRow& row = p.rows().back();
  return row.attention ? row.precision + " | " + row.why : "no row";
}

TEST(AttentionPlan, InBf16HasNoRowNoSlotAndNoStateUnlessSomeAttentionHasCodes) {
  for (const auto& entry : recipes()) {
    Precision p({.recipe = std::string(entry.name)});
    const AttentionPlan plan = p.plan_attention(attention_of(1));
    EXPECT_FALSE(plan.codes());
    EXPECT_FALSE(p.rows().back().attention) << entry.name;
    EXPECT_EQ(p.slots().size(), 0) << entry.name;
  }
  EXPECT_EQ(row_of({.rules = {{.path = "layers.1.*", .attention = "bf16"}}, .attention = fp8}), "bf16 | rule 1: layers.1.*");
}

TEST(AttentionPlan, StatesFormatsScalesAndReason) {
  EXPECT_EQ(row_of({.recipe = "delayed", .options = {.history = 16}, .attention = forward_alone}),
            "q, k, v, p, o e4m3; backward bf16; per-tensor scale, maximum of 16 steps | recipe.attention = \"fp8_forward\"");
  EXPECT_EQ(row_of({.recipe = "current", .attention = fp8}),
            "q, k, v, p, o e4m3, do, dp, dq, dk, dv e5m2; q, k, v, do: per-tensor scale from its own maximum; others: per-tensor scale, "
            "maximum of 1024 steps | recipe.attention = \"fp8\"");
  EXPECT_EQ(row_of({.recipe = "block128", .attention = forward_alone}), row_of({.recipe = "bf16", .attention = forward_alone}))
      << "neither has a scale per tensor";
}

TEST(AttentionPlan, RulesOfBlocksOfPathsAndOfRecoveryDecideInTheirOrder) {
  const auto first = [](const PrecisionConfig& c, int layer) { return row_of(c, layer).substr(0, 4); };
  const PrecisionConfig ends{.recipe = "current", .first = 1, .last = 1, .attention = fp8};
  EXPECT_EQ(row_of(ends, 0), "bf16 | among the first 1 blocks (recipe.first)");
  EXPECT_EQ(first(ends, 1), "q, k");
  EXPECT_EQ(row_of(ends, 3), "bf16 | among the last 1 blocks (recipe.last)");
  EXPECT_EQ(row_of({.recipe = "current", .keep_bf16 = {"*.attn.scores"}, .attention = fp8}),
            "bf16 | matches recipe.keep_bf16 \"*.attn.scores\"");
  EXPECT_EQ(row_of({.recipe = "current", .rules = {{.path = "*", .recipe = "bf16"}}, .attention = fp8}), "bf16 | rule 1: *");
  const PrecisionRule of_operand{.path = "*", .operands = {"x"}, .recipe = "bf16"}, of_format{.path = "*", .format = "e4m3"},
      of_attention{.path = "layers.1.*", .attention = "fp8_forward"};
  EXPECT_EQ(row_of({.recipe = "current", .rules = {of_operand, of_format, of_attention}}).substr(0, 35),
            "q, k, v, p, o e4m3; backward bf16; ")
      << "rules of linear layers leave it alone";
  PrecisionConfig safer{.recipe = "current", .attention = fp8};
  safer.meanwhile = {{.path = "layers.1.attn.scores", .recipe = "block128"}};
  EXPECT_EQ(row_of(safer), "bf16 | recovery.layers, for some steps");
}

TEST(AttentionPlan, ARuleOfAttentionLeavesLinearLayersToLaterRules) {
  Precision p({.recipe = "current", .rules = {{.path = "layers.*", .attention = "fp8"}, {.path = "layers.*", .recipe = "bf16"}}});
  EXPECT_EQ(p.plan({.path = "layers.1.attn.qkv", .out = 256, .in = 128, .layer = 1, .layers = 4}).precision, "bf16");
  EXPECT_TRUE(p.plan_attention(attention_of(1)).codes_gradients());
  EXPECT_NO_THROW(p.require_patterns_used());
}

TEST(AttentionPlan, NeedsActivationsOfBf16) {
  for (const char* recipe : {"fp32", "fp16"}) {
    const std::string error = testing::error_of<ConfigError>([&] { Precision p({.recipe = recipe, .attention = fp8}); });
    EXPECT_TRUE(testing::has(error, format("recipe.name = \"{}\"", recipe))) << error;
  }
}

TEST(AttentionPlan, QuantizersOfWhatAttentionMakesKnowTheirScales) {
  for (const char* recipe : {"bf16", "delayed", "current", "block128", "mxfp8"}) {
    Precision p({.recipe = recipe, .attention = fp8});
    const AttentionPlan plan = p.plan_attention(attention_of(1));
    Stream stream(Device::cpu);
    p.allocate(stream);
    EXPECT_EQ(p.slots().size(), 10) << recipe;
    for (const Operand o : {Operand::p, Operand::o, Operand::dp, Operand::dq, Operand::dk, Operand::dv})
      EXPECT_TRUE(plan.of(o).spec({}).scale_known()) << recipe << name(o);
    for (const Operand o : {Operand::q, Operand::k, Operand::v, Operand::d_o})
      EXPECT_EQ(plan.of(o).spec({}).scale_known(), std::string(recipe) == "delayed") << recipe << name(o);
    EXPECT_EQ(p.calibration_passes(), 3) << recipe;
  }
}

TEST(AttentionPlan, TheLastStepsInAPlainRecipeHaveNoCodes) {
  const PrecisionConfig last =
      final_part({.recipe = "current", .rules = {{.path = "*", .attention = "fp8"}}, .attention = fp8, .final_recipe = "bf16"});
  EXPECT_FALSE(codes_attention(last));
  EXPECT_FALSE(codes_attention(final_part({.recipe = "current", .attention = fp8, .final_recipe = "bf16_forward"})));
  EXPECT_TRUE(codes_attention(final_part({.recipe = "current", .attention = fp8, .final_recipe = "delayed"})));
}

}  // namespace
}  // namespace octet::scaling
