#include "octet/scaling/precision.hpp"

#include <gtest/gtest.h>

#include "tests/testing/scratch.hpp"

namespace octet {
namespace {

Site block_site(const std::string& path, int layer) { return {.path = path, .out = 256, .in = 128, .layer = layer, .layers = 4}; }

TEST(Precision, AMisspeltRecipeIsRefusedWithTheNearestName) {
  try {
    Precision p({.recipe = "blok128"});
    FAIL();
  } catch (const ConfigError& e) {
    EXPECT_NE(std::string(e.what()).find("did you mean \"block128\"?"), std::string::npos) << e.what();
  }
}

TEST(Precision, AFormatThatARecipeDoesNotHaveIsRefused) {
  EXPECT_THROW(Precision({.recipe = "rowwise", .options = {.format = "hybrid"}}), ConfigError);
  EXPECT_THROW(Precision({.recipe = "global", .options = {.format = "hybrid"}}), ConfigError);
  EXPECT_NO_THROW(Precision({.recipe = "current", .options = {.format = "e4m3"}}));
}

TEST(Precision, HybridIsE4m3ForwardAndE5m2Backward) {
  Precision p({.recipe = "current"});
  const LinearPlan plan = p.plan(block_site("layers.0.mlp.down", 0));
  Stream stream(Device::null);
  p.allocate(stream);
  const Pass pass;
  EXPECT_EQ(plan.x->spec(pass).format, DType::e4m3);
  EXPECT_EQ(plan.w->spec(pass).format, DType::e4m3);
  EXPECT_EQ(plan.dy->spec(pass).format, DType::e5m2);
}

TEST(Precision, ExemptionsKeepBf16AndSayWhy) {
  Precision p({.recipe = "current", .keep_bf16 = {"layers.*.mlp.down"}, .first = 1, .last = 1});
  const auto why = [&](const Site& site) {
    const LinearPlan plan = p.plan(site);
    return plan.precision + " | " + plan.why;
  };
  EXPECT_EQ(why(block_site("layers.0.attn.qkv", 0)), "bf16 | among the first 1 blocks (recipe.first)");
  EXPECT_EQ(why(block_site("layers.3.attn.qkv", 3)), "bf16 | among the last 1 blocks (recipe.last)");
  EXPECT_EQ(why(block_site("layers.1.mlp.down", 1)), "bf16 | matches recipe.keep_bf16 \"layers.*.mlp.down\"");
  EXPECT_EQ(why({.path = "lm_head", .out = 272, .in = 128, .head = true}), "bf16 | head: recipe.head = \"bf16\"");
  EXPECT_EQ(why({.path = "layers.1.odd", .out = 100, .in = 128, .layer = 1, .layers = 4}),
            "bf16 | 100 x 128 is not a multiple of 16, as 8-bit GEMMs need");
  EXPECT_EQ(why(block_site("layers.1.attn.qkv", 1)).substr(0, 7), "x e4m3,");
}

TEST(Precision, APatternWithoutALayerIsRefusedWithTheNearestPathUnderEveryRecipe) {
  for (const char* recipe : {"bf16", "current"}) {
    const auto refusal = [&](const std::string& pattern) {
      Precision p({.recipe = recipe, .keep_bf16 = {pattern}});
      p.plan(block_site("layers.1.mlp.down", 1)), p.plan(block_site("layers.2.mlp.down", 2)), p.plan(block_site("layers.2.attn.qkv", 2));
      return testing::error_of<ConfigError>([&] { p.require_patterns_used(); });
    };
    EXPECT_EQ(refusal("layers.*.mlp.down"), "no error");
    EXPECT_EQ(refusal("layers.*.mpl.down"),
              "recipe.keep_bf16: \"layers.*.mpl.down\" matches no layer; did you mean \"layers.*.mlp.down\"?; layers are "
              "layers.*.mlp.down, layers.*.attn.qkv");
    EXPECT_EQ(refusal("layers.7.attn.qkv").substr(0, 54), "recipe.keep_bf16: \"layers.7.attn.qkv\" matches no layer");
    EXPECT_EQ(refusal(""), "recipe.keep_bf16: \"\" matches no layer; layers are layers.*.mlp.down, layers.*.attn.qkv");
  }
}

TEST(Precision, EvaluationAndRecomputationRecordNothing) {
  for (const auto& entry : recipes()) {
    Precision p({.recipe = std::string(entry.name)});
    const LinearPlan plan = p.plan(block_site("layers.1.mlp.up", 1));
    Stream stream(Device::null);
    p.allocate(stream);
    for (const auto kind : {Pass::Kind::evaluate, Pass::Kind::recompute}) {
      const auto spec = plan.x->spec({.kind = kind});
      EXPECT_FALSE(bool(spec.amax)) << entry.name;
      EXPECT_EQ(spec.health, nullptr) << entry.name;
    }
    const auto spec = plan.x->spec({.kind = Pass::Kind::train});
    EXPECT_EQ(bool(spec.amax), spec.quantizes()) << entry.name;
  }
}

TEST(Precision, EveryScaleOfATableStandsOnItsOwn256Bytes) {
  Precision p({.recipe = "delayed"});
  const LinearPlan plan = p.plan(block_site("layers.1.mlp.up", 1));
  Stream stream(Device::cpu);
  p.allocate(stream);
  for (const auto* q : {plan.x.get(), plan.w.get(), plan.dy.get()}) {
    const auto spec = q->spec({});
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(spec.scale.data) % 256, 0u);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(spec.descale.data) % 256, 0u);
    EXPECT_EQ(spec.scale.f32()[0], 1.0f);
  }
}

TEST(Precision, ASkippedStepLeavesKnownScalesAndClearsTheMaxima) {
  for (const char* recipe : {"delayed", "global"}) {
    Precision p({.recipe = recipe});
    const LinearPlan plan = p.plan(block_site("layers.1.mlp.up", 1));
    Stream stream(Device::cpu);
    p.allocate(stream);
    const Tensor skip = stream.zeros({1}, DType::f32, Lifetime::run);
    const auto scale = [&] { return plan.x->spec({}).scale.f32()[0]; };
    const auto finish = [&](float amax, float flag) {
      for (int i = 0; i < p.slots().size(); ++i) p.slots().amax().f32()[i] = amax;
      *skip.f32() = flag;
      p.end_step(stream, skip);
    };
    finish(2.0f, 0);
    EXPECT_EQ(scale(), 224.0f) << recipe;
    finish(64.0f, 1);
    EXPECT_EQ(scale(), 224.0f) << recipe;
    EXPECT_EQ(p.slots().amax().f32()[0], 0.0f) << recipe;
    finish(4.0f, 0);
    EXPECT_EQ(scale(), 112.0f) << recipe;
    finish(1.0f, 0);
    // The history remembers 4; the global scale follows the last step alone.
    EXPECT_EQ(scale(), std::string_view(recipe) == "delayed" ? 112.0f : 448.0f) << recipe;
  }
}

}  // namespace
}  // namespace octet
