#include <gtest/gtest.h>

#include "octet/scaling/precision.hpp"
#include "tests/testing/tensors.hpp"

// Quantizers of stacks of experts.

namespace octet::scaling {
namespace {

constexpr std::int64_t experts = 4, N = 32, K = 48;

/// The stack of all experts, or of two of them on a rank.
Site stack_site(std::int64_t first = 0, std::int64_t count = experts) {
  return {.path = "layers.0.mlp.experts.down",
          .out = count * N,
          .in = K,
          .matrices = count,
          .used = 1,
          .layer = 0,
          .layers = 1,
          .stack = experts,
          .first = first};
}

struct Stacked {
  Stream stream{Device::cpu};
  Precision precision;
  LinearPlan plan;

  explicit Stacked(const PrecisionConfig& config, const Site& site = stack_site()) : precision(config), plan(precision.plan(site)) {
    precision.allocate(stream);
  }
  /// A step whose weights have these maxima, the others' columns as other ranks leave them.
  void step(const std::vector<float>& maxima) {
    const ops::QuantizeSpec spec = plan.w->spec({.kind = Pass::Kind::train});
    for (std::size_t e = 0; e < maxima.size(); ++e) spec.amax.f32()[e] = maxima[e];
    precision.end_step(stream, stream.zeros({1}, DType::f32, Lifetime::run));
  }
};

TEST(Stacks, HaveAScalePerMatrixWhereAMatrixHasOne) {
  const ScaleBlock rows{N, 0}, cols{0, N};
  for (const auto& entry : recipes()) {
    if (entry.options.empty()) continue;
    const std::string recipe(entry.name);
    const Stacked s({.recipe = recipe}, stack_site());
    const bool each = recipe == "current" || recipe == "delayed";
    const ops::QuantizeSpec w = s.plan.w->spec({.kind = Pass::Kind::train}), x = s.plan.x->spec({.kind = Pass::Kind::train}),
                            dy = s.plan.dy->spec({.kind = Pass::Kind::train});
    EXPECT_EQ(w.rows == rows && w.cols == cols, each) << recipe;
    EXPECT_FALSE(x.rows == rows || dy.rows == rows) << recipe;
    if (!w.quantizes()) continue;  // a shape that its blocks do not fit
    EXPECT_EQ(w.amax.count(), each ? experts : 1) << recipe;
    EXPECT_EQ(x.amax.count() + dy.amax.count(), 2) << recipe;
    EXPECT_EQ(s.precision.rows().back().precision.find("; w has one for each expert") != std::string::npos, each) << recipe;
  }
}

TEST(Stacks, OfOneMatrixAreOrdinaryTensors) {
  Site site = stack_site(0, 1);
  site.stack = 1;
  const Stacked s({.recipe = "delayed"}, site);
  EXPECT_TRUE(s.plan.w->spec({}).rows.whole_tensor());
  EXPECT_EQ(s.precision.slots().history().shape, (Shape{1024, 3}));
}

// Under `delayed` a matrix's scale follows from the maxima of its own steps.
TEST(Stacks, EachMatrixHasAHistory) {
  Stacked s({.recipe = "delayed", .options = {.history = 3}});
  s.step({1, 2, 4, 8}), s.step({16, 1, 1, 0});
  const ops::QuantizeSpec w = s.plan.w->spec({});
  EXPECT_EQ(testing::values(w.scale), (std::vector<double>{448.0 / 16, 448.0 / 2, 448.0 / 4, 448.0 / 8}));
  EXPECT_EQ(testing::values(w.descale), (std::vector<double>{16 / 448.0f, 2 / 448.0f, 4 / 448.0f, 8 / 448.0f}));
}

// A rank with experts 2 and 3 has their part of the table of all.
TEST(Stacks, ARankRaisesTheMaximaOfItsOwnExperts) {
  Stacked s({.recipe = "delayed", .options = {.history = 2}}, stack_site(2, 2));
  const ops::QuantizeSpec w = s.plan.w->spec({.kind = Pass::Kind::train});
  EXPECT_EQ(w.amax.data, s.precision.slots().amax(1).rows(2, 2).data);
  EXPECT_EQ(s.precision.slots().amax(1).shape, Shape{experts});
  s.step({4, 8});
  EXPECT_EQ(testing::values(s.plan.w->spec({}).scale), (std::vector<double>{112, 56}));
  const auto states = s.precision.quantizer_states(s.stream);
  EXPECT_EQ(states[1].scales, (std::vector<float>{1, 1, 112, 56}));
}

// Recipes with one scale and with one per matrix hand on what they know.
TEST(Stacks, StateGoesFromOneScaleToSeveralAndBack) {
  Stacked each({.recipe = "delayed", .options = {.history = 2}}), one({.recipe = "global"}),
      again({.recipe = "delayed", .options = {.format = "e4m3", .history = 2}});
  each.step({1, 2, 4, 8});
  EXPECT_EQ(one.precision.set_quantizer_states(one.stream, each.precision.quantizer_states(each.stream)), 1) << "dy is e5m2";
  EXPECT_EQ(testing::values(one.plan.w->spec({}).scale), std::vector<double>{56});
  EXPECT_EQ(again.precision.set_quantizer_states(again.stream, one.precision.quantizer_states(one.stream)), 0);
  EXPECT_EQ(testing::values(again.plan.w->spec({}).scale), std::vector<double>(experts, 56));
}

// A weight that does not train is quantized by the maximum of each of its matrices.
TEST(Stacks, FrozenOnesHaveAScalePerMatrixToo) {
  for (const char* recipe : {"current", "delayed"}) {
    const Stacked s({.recipe = recipe, .frozen_weights = true});
    EXPECT_EQ(s.plan.w->spec({}).rows, (ScaleBlock{N, 0})) << recipe;
    EXPECT_FALSE(s.plan.w->spec({}).scale_known()) << recipe;
  }
}

}  // namespace
}  // namespace octet::scaling
