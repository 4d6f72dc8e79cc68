#include "octet/scaling/precision.hpp"

#include <gtest/gtest.h>

#include "tests/testing/scratch.hpp"

namespace octet::scaling {
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

TEST(Precision, LastStepsWithBf16InForwardKeepTheCodesOfBackwardAndSayWhy) {
  const PrecisionConfig config{.recipe = "current", .keep_bf16 = {"layers.*.mlp.down"}, .final_recipe = "bf16_forward"};
  const PrecisionConfig last = final_part(config);
  EXPECT_EQ(last.recipe, "current");
  EXPECT_FALSE(has_final_part(last));
  Precision p(last), before(config);
  const LinearPlan plan = p.plan(block_site("layers.1.attn.qkv", 1)), own = before.plan(block_site("layers.1.attn.qkv", 1));
  EXPECT_TRUE(plan.forward_values);
  EXPECT_FALSE(own.forward_values);
  EXPECT_TRUE(own.fast_forward);
  EXPECT_FALSE(plan.fast_forward) << "its forward sums in FP32";
  EXPECT_EQ(plan.precision.substr(0, 55), "bf16 in forward; in backward x e4m3, w e4m3, dy e5m2; p");
  EXPECT_EQ(plan.why, "recipe current; forward: recipe.final = \"bf16_forward\"");
  EXPECT_EQ(p.plan(block_site("layers.1.mlp.down", 1)).precision, "bf16");
  EXPECT_EQ(before.rows()[2].precision, "bf16 in forward, as before in backward");
  EXPECT_EQ(before.rows()[2].why, "recipe.final = \"bf16_forward\"");
}

TEST(Precision, Bf16InForwardNeedsCodesThatBackwardKeeps) {
  for (const char* recipe : {"bf16", "fp16", "fp32"})
    EXPECT_THROW(Precision({.recipe = recipe, .final_recipe = "bf16_forward"}), ConfigError) << recipe;
  EXPECT_NO_THROW(Precision({.recipe = "bf16", .rules = {{.path = "*", .recipe = "block128"}}, .final_recipe = "bf16_forward"}));
}

TEST(Precision, SavedActivationsHaveARowAndUnlessRecomputedASlotThatStepsClear) {
  Precision plain({.recipe = "current"});
  EXPECT_EQ(plain.plan_saved("layers.0.mlp.h", 64, true), nullptr);
  const std::size_t rows = plain.rows().size();
  plain.plan_saved_values("layers.0.attn.o", "unused");
  EXPECT_EQ(plain.rows().size(), rows) << "no rows where all is saved as computed";

  Precision p({.recipe = "delayed", .activations = SavedActivations::fp8});
  const LinearPlan linear = p.plan(block_site("layers.0.mlp.up", 0));
  const auto recorded = p.plan_saved("layers.0.mlp.h", 64, true), recomputed = p.plan_saved("layers.1.mlp.h", 64, false);
  EXPECT_EQ(p.plan_saved("layers.0.attn.o", 40, true), nullptr);
  EXPECT_EQ(p.rows().back().why, "saved: 40 columns are not a multiple of 32");
  Stream stream(Device::cpu);
  p.allocate(stream);
  EXPECT_EQ(p.slots().size(), 4) << "x, w and dy of the layer, and what forward saves";
  const Pass measured{.kind = Pass::Kind::train}, others{.kind = Pass::Kind::train, .count = false};
  EXPECT_EQ(recomputed->spec(measured).health, nullptr);
  EXPECT_EQ(recorded->spec(others).health, nullptr) << "an op encodes in passing";
  const ops::QuantizeSpec spec = recorded->spec(measured);
  ASSERT_NE(spec.health, nullptr);
  EXPECT_EQ(spec.rows, (ScaleBlock{1, 32}));
  EXPECT_EQ(spec.rule, ScaleRule::e8m0);
  *spec.amax.f32() = 3;
  p.end_step(stream, stream.zeros({1}, DType::f32));
  EXPECT_EQ(*recorded->spec(measured).amax.f32(), 0);
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

// The plan's rows of layers, "path: precision | why".
std::vector<std::string> plan_of(const PrecisionConfig& config, const std::vector<Site>& sites) {
  Precision p(config);
  for (const Site& site : sites) p.plan(site);
  std::vector<std::string> out;
  for (const PlanRow& row : p.rows())
    if (row.out != 0) out.push_back(format("{}: {} | {}", row.path, row.precision, row.why));
  return out;
}

std::vector<Site> model_sites() {
  std::vector<Site> out;
  for (int layer = 0; layer < 4; ++layer)
    for (const char* part : {"attn.qkv", "mlp.down"}) out.push_back(block_site(format("layers.{}.{}", layer, part), layer));
  out.push_back({.path = "lm_head", .out = 272, .in = 128, .head = true});
  return out;
}

std::string row_of(const PrecisionConfig& config, const std::string& path) {
  for (const std::string& row : plan_of(config, model_sites()))
    if (row.starts_with(path + ": ")) return row.substr(path.size() + 2);
  return "no row";
}

std::string refusal(const PrecisionConfig& config) {
  return testing::error_of<ConfigError>([&] {
    Precision p(config);
    for (const Site& site : model_sites()) p.plan(site);
    p.require_patterns_used();
  });
}

TEST(Rules, TheFirstThatMatchesDecidesAndIsNamedInThePlan) {
  const PrecisionConfig config{.recipe = "current",
                               .rules = {{.path = "layers.1.*", .recipe = "bf16"},
                                         {.path = "layers.*.mlp.down", .recipe = "block128"},
                                         {.path = "lm_head", .recipe = "rowwise"}}};
  EXPECT_EQ(refusal(config), "no error");
  EXPECT_EQ(row_of(config, "layers.1.mlp.down"), "bf16 | rule 1: layers.1.*");
  EXPECT_EQ(row_of(config, "layers.2.mlp.down"),
            "x e4m3, w e4m3, dy e4m3; x and dy 1x128, w 128x128, power-of-two scales | rule 2: layers.*.mlp.down");
  EXPECT_EQ(row_of(config, "layers.2.attn.qkv"),
            "x e4m3, w e4m3, dy e5m2; per-tensor scale from its own maximum; fast accumulation in forward on a GPU | recipe current");
  EXPECT_EQ(row_of(config, "lm_head"),
            "x e4m3, w e4m3, dy e4m3; per-row power-of-two scale; fast accumulation in forward on a GPU | rule 3: lm_head");
}

TEST(Rules, ShortFormsAreTheRulesThatTheyStandForAndComeFirst) {
  const auto precisions = [](const PrecisionConfig& config) {
    std::vector<std::string> out;
    for (const std::string& row : plan_of(config, model_sites())) out.push_back(row.substr(0, row.find(" | ")));
    return out;
  };
  const auto bf16 = [](const char* path) { return PrecisionRule{.path = path, .recipe = "bf16"}; };
  EXPECT_EQ(precisions({.recipe = "delayed", .keep_bf16 = {"layers.*.mlp.down"}}),
            precisions({.recipe = "delayed", .rules = {bf16("layers.*.mlp.down")}}));
  EXPECT_EQ(precisions({.recipe = "delayed", .first = 1, .last = 2}),
            precisions({.recipe = "delayed", .rules = {bf16("layers.0.*"), bf16("layers.2.*"), bf16("layers.3.*")}}));
  EXPECT_EQ(precisions({.recipe = "delayed"}),
            precisions({.recipe = "delayed", .rules = {bf16("lm_head")}, .head = HeadPrecision::recipe}));
  const PrecisionConfig both{.recipe = "current", .rules = {{.path = "layers.*.mlp.down", .recipe = "block128"}}, .first = 1, .last = 1};
  EXPECT_EQ(row_of(both, "layers.0.mlp.down"), "bf16 | among the first 1 blocks (recipe.first)");
  EXPECT_TRUE(row_of(both, "layers.1.mlp.down").ends_with("rule 1: layers.*.mlp.down"));
}

TEST(Rules, SingleOperandsHaveRecipesAndFormatsOfTheirOwn) {
  const auto row = [](std::vector<PrecisionRule> rules) {
    return row_of({.recipe = "block128", .rules = std::move(rules)}, "layers.1.mlp.down");
  };
  EXPECT_EQ(row({{.path = "layers.1.*", .operands = {"dy"}, .format = "e5m2"}}),
            "x e4m3, w e4m3, dy e5m2; x and dy 1x128, w 128x128, power-of-two scales | x, w: recipe block128; dy: rule 1: layers.1.*");
  EXPECT_EQ(row({{.path = "layers.1.*", .format = "hybrid"}}),
            "x e4m3, w e4m3, dy e5m2; x and dy 1x128, w 128x128, power-of-two scales | rule 1: layers.1.*");
  EXPECT_EQ(row({{.path = "layers.1.*", .operands = {"w"}, .recipe = "current"}, {.path = "layers.*", .recipe = "rowwise"}}),
            "x e4m3 (rowwise), w e4m3 (current), dy e4m3 (rowwise) | x, dy: rule 2: layers.*; w: rule 1: layers.1.*");
  EXPECT_EQ(row({{.path = "layers.1.*", .operands = {"x", "w"}, .recipe = "bf16"}}),
            "x bf16, w bf16, dy e4m3 (block128); 8-bit operands are decoded, since no GEMM multiplies them by BF16 | x, w: rule 1: "
            "layers.1.*; dy: recipe block128");
  Precision p({.recipe = "bf16", .rules = {{.path = "*", .operands = {"w"}, .recipe = "current", .format = "e5m2"}}});
  const LinearPlan plan = p.plan(block_site("layers.1.mlp.up", 1));
  Stream stream(Device::null);
  p.allocate(stream);
  EXPECT_EQ(plan.x->spec({}).format, DType::bf16);
  EXPECT_EQ(plan.w->spec({}).format, DType::e5m2);
  EXPECT_EQ(plan.dy->spec({}).format, DType::bf16);
  EXPECT_EQ(p.slots().size(), 1);
}

TEST(Rules, ALayerOfAShapeThatOneOfItsRecipesLacksStaysInBf16) {
  Precision p({.recipe = "current", .rules = {{.path = "*", .operands = {"dy"}, .recipe = "mxfp8"}}});
  EXPECT_EQ(p.plan({.path = "odd", .out = 48, .in = 128}).why, "48 x 128 is not a multiple of 32, as 8-bit GEMMs need");
}

TEST(Rules, InAModelThatDoesNotQuantizeBf16AndFormatsChangeNothing) {
  const std::vector<PrecisionRule> rules = {{.path = "layers.0.*", .recipe = "bf16"}, {.path = "layers.*", .format = "e4m3"}};
  for (const char* recipe : {"bf16", "fp32"})
    EXPECT_EQ(plan_of({.recipe = recipe, .rules = rules}, model_sites()), plan_of({.recipe = recipe}, model_sites())) << recipe;
}

TEST(Rules, ThatMakeNoSenseAreRefusedByNumberAndKey) {
  const auto second = [](PrecisionRule rule) {
    return refusal({.recipe = "current", .rules = {{.path = "lm_head", .recipe = "bf16"}, std::move(rule)}});
  };
  EXPECT_EQ(second({.recipe = "bf16"}), "recipe.rules[2].path is empty: name layers, as in \"layers.*.mlp.down\"");
  EXPECT_EQ(second({.path = "layers.*"}), "recipe.rules[2] says nothing: set its recipe, its format or its attention");
  EXPECT_TRUE(testing::has(second({.path = "layers.*", .recipe = "blok128"}),
                           "recipe.rules[2].recipe: recipe \"blok128\" does not exist; did you mean \"block128\"?"));
  EXPECT_EQ(second({.path = "layers.*", .operands = {"y"}, .recipe = "bf16"}),
            "recipe.rules[2].operands: \"y\" is none; operands are x, w and dy");
  EXPECT_EQ(second({.path = "layers.*", .recipe = "bf16", .format = "e4m3"}),
            "recipe.rules[2].format = \"e4m3\": bf16 has no 8-bit format; leave it out");
  EXPECT_EQ(second({.path = "layers.*", .recipe = "rowwise", .format = "e5m2"}),
            "recipe.rules[2].format = \"e5m2\": recipe rowwise has e4m3 only; leave it out");
  EXPECT_EQ(second({.path = "layers.*", .format = "e3m4"}), "recipe.rules[2].format = \"e3m4\": there are default, hybrid, e4m3 and e5m2");
  EXPECT_EQ(
      second({.path = "layers.*.mpl.down", .recipe = "bf16"}),
      "recipe.rules[2].path: \"layers.*.mpl.down\" matches no layer; did you mean \"layers.*.mlp.down\"?; layers are layers.*.attn.qkv, "
      "layers.*.mlp.down, lm_head");
  EXPECT_TRUE(testing::has(second({.path = "lm_*", .recipe = "block128"}), "recipe.rules[2].path: \"lm_*\" has nothing to decide"));
  EXPECT_TRUE(testing::has(second({.path = "layers.*", .recipe = "fp32"}),
                           "recipe.rules[2].recipe = \"fp32\": activations between layers have one type"));
  EXPECT_TRUE(testing::has(refusal({.recipe = "fp32", .rules = {{.path = "layers.*", .recipe = "current"}}}),
                           "recipe.rules[1].recipe = \"current\""));
}

TEST(Rules, EachRecipeMovesTheScalesAndMaximaOfItsOwnSlotsAlone) {
  // `delayed` looks back, `global` has one scale for its own tensors, `current` has none.
  Precision p({.recipe = "global",
               .options = {.history = 4},
               .rules = {{.path = "layers.*.attn.qkv", .recipe = "delayed"}, {.path = "layers.1.*", .recipe = "current"}}});
  std::vector<LinearPlan> plans;
  for (const Site& site : model_sites()) plans.push_back(p.plan(site));
  Stream stream(Device::cpu);
  p.allocate(stream);
  const Tensor skip = stream.zeros({1}, DType::f32, Lifetime::run);
  const Pass train{.kind = Pass::Kind::train};
  const auto finish = [&](float delayed, float others) {
    for (std::size_t i = 0; i < plans.size(); ++i)
      for (const auto* q : {plans[i].x.get(), plans[i].w.get(), plans[i].dy.get()})
        if (const auto spec = q->spec(train); spec.quantizes()) *spec.amax.f32() = i == 0 ? delayed : others;
    p.end_step(stream, skip);
  };
  const auto scale = [&](std::size_t layer) { return plans[layer].x->spec({}).scale.f32()[0]; };
  finish(64, 2);
  EXPECT_EQ(scale(0), 7) << "layers.0.attn.qkv, delayed";
  EXPECT_EQ(scale(1), 224) << "layers.0.mlp.down, global: not the 64 of another recipe";
  EXPECT_FALSE(plans[3].x->spec({}).scale_known()) << "layers.1.mlp.down, current";
  finish(1, 4);
  EXPECT_EQ(scale(0), 7) << "the history remembers 64";
  EXPECT_EQ(scale(1), 112);
  for (int i = 0; i < p.slots().size(); ++i) {
    EXPECT_EQ(p.slots().amax(i).f32()[0], 0) << i;
    const bool looks_back =
        p.slots().slots()[std::size_t(i)].path.ends_with("attn.qkv") && p.slots().slots()[std::size_t(i)].path != "layers.1.attn.qkv";
    const float last = p.slots().history().rows(3, 1).f32()[i];
    EXPECT_EQ(last != 0, looks_back || p.slots().slots()[std::size_t(i)].path == "layers.1.attn.qkv") << i;
  }
}

struct Names final : StateVisitor {
  std::vector<std::string> names;
  std::string prefix;
  bool restoring() const override { return false; }
  void state(std::string_view name, const Tensor&) override { names.push_back(prefix + std::string(name)); }
  void state(std::string_view name, const StoredSlice&, Tiny) override { names.push_back(prefix + std::string(name)); }
  void state(std::string_view, std::int64_t&) override {}
  void state(std::string_view, double&) override {}
  void state(std::string_view, std::vector<double>&) override {}
  void enter(std::string_view name) override { prefix += std::string(name) + "."; }
  void leave() override { prefix.resize(prefix.rfind('.', prefix.size() - 2) + 1); }
};

TEST(Rules, StateOfOneRecipeHasTheNamesItHadAndThatOfSeveralIsToldApart) {
  const auto names = [](const PrecisionConfig& config) {
    Precision p(config);
    for (const Site& site : model_sites()) p.plan(site);
    Stream stream(Device::null);
    p.allocate(stream);
    Names visitor;
    p.visit_state(visitor);
    return visitor.names;
  };
  using List = std::vector<std::string>;
  EXPECT_EQ(names({.recipe = "delayed"}), (List{"amax_history", "scales.scale", "scales.descale"}));
  EXPECT_EQ(names({.recipe = "delayed", .rules = {{.path = "layers.1.*", .recipe = "global"}, {.path = "layers.2.*", .recipe = "bf16"}}}),
            (List{"amax_history", "scales.scale", "scales.descale", "global.scales.scale", "global.scales.descale"}));
  EXPECT_EQ(names({.recipe = "bf16", .rules = {{.path = "layers.1.*", .recipe = "delayed"}}}),
            (List{"amax_history", "delayed.scales.scale", "delayed.scales.descale"}));
}

}  // namespace
}  // namespace octet::scaling
