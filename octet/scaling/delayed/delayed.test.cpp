#include "octet/scaling/delayed/delayed.hpp"

#include <gtest/gtest.h>

#include <deque>

#include "octet/scaling/recipe.testing.hpp"
#include "tests/testing/saved_state.hpp"
#include "tests/testing/tensors.hpp"

// The definition: a tensor is encoded under the scale that past steps left; then scale = max / (2^margin * m), where m is the largest
// maximum of the last `history` steps, or the last one alone. A step that was skipped does not count.
// Source: Micikevicius et al. 2022, section 3; Transformer Engine, DelayedScaling.

namespace octet::scaling {
namespace {

using testing::Definition;
using testing::Matrix;
using testing::OneLayer;
using testing::SavedState;

/// Magnitudes of the values of one step after another: an outlier that leaves a history of three, then larger ones again.
constexpr double magnitudes[] = {1, 1, 50, 0.1, 0.1, 0.1, 0.1, 3, 400, 400};

/// The scale of one tensor by the definition.
struct History {
  std::size_t length;
  double largest, margin;
  bool most_recent;
  std::deque<double> window{};
  double scale = 1;

  void step(double amax) {
    window.push_front(amax);
    if (window.size() > length) window.pop_back();
    const double most = most_recent ? amax : *std::max_element(window.begin(), window.end());
    scale = largest / (std::exp2(margin) * most);
  }
};

Definition under(DType format, double scale) {
  return {.format = format, .block_rows = 0, .block_cols = 0, .scale = [=](double) { return scale; }, .at = [](auto, auto) { return 0; }};
}

Matrix values_of(Operand o, std::size_t step) {
  return OneLayer::values(o, testing::Values::finite, unsigned(10 * step + std::size_t(o)), magnitudes[step]);
}

void expect_operands_follow(const RecipeOptions& options, DType gradient) {
  OneLayer layer({.recipe = "delayed", .options = options});
  for (const Operand o : testing::operands) {
    const DType format = o == Operand::gradient ? gradient : DType::e4m3;
    ASSERT_EQ(layer.operand(o).spec({}).format, format);
  }
  std::vector<History> histories;
  for (const Operand o : testing::operands)
    histories.push_back({std::size_t(options.history), o == Operand::gradient && gradient == DType::e5m2 ? 57344.0 : 448.0,
                         double(options.margin), options.algorithm == "most_recent"});
  for (std::size_t step = 0; step < std::size(magnitudes); ++step) {
    for (const Operand o : testing::operands) {
      History& h = histories[std::size_t(o)];
      const Matrix m = values_of(o, step);
      const QTensor q = quantized(layer.stream, layer.operand(o), m);
      const std::string what = std::string(name(o)) + " in step " + std::to_string(step);
      const Definition d = under(layer.operand(o).spec({}).format, h.scale);
      expect_defined(q.rows, m, d, what);
      expect_defined(q.cols, m.transposed(), d, what + ", transposed");
      h.step(m.amax());
    }
    layer.end_step();
    for (const Operand o : testing::operands) {
      const double scale = histories[std::size_t(o)].scale;
      EXPECT_NEAR(*layer.operand(o).spec({}).scale.f32(), scale, scale * 0x1p-23) << name(o) << " after step " << step;
    }
  }
}

TEST(Delayed, PlansOneKnownScalePerTensorInHybridFormats) {
  OneLayer layer({.recipe = "delayed"});
  EXPECT_EQ(layer.row(),
            "x e4m3, w e4m3, dy e5m2; per-tensor scale, maximum of 1024 steps; fast accumulation in forward on a GPU | recipe delayed");
  EXPECT_EQ(layer.precision.slots().history().shape, Shape({1024, 3}));
  for (const Operand o : testing::operands) {
    EXPECT_TRUE(layer.operand(o).spec({}).scale_known()) << name(o);
    EXPECT_EQ(*layer.operand(o).spec({}).scale.f32(), 1) << "before any step";
  }
}

TEST(Delayed, ScalesFollowTheLargestMaximumOfTheHistory) { expect_operands_follow({.history = 3}, DType::e5m2); }
TEST(Delayed, ScalesFollowTheMostRecentMaximum) { expect_operands_follow({.history = 3, .algorithm = "most_recent"}, DType::e5m2); }
TEST(Delayed, AMarginLeavesRoomAndFormatsAreAnOption) {
  expect_operands_follow({.format = "e4m3", .history = 4, .margin = 2}, DType::e4m3);
}
TEST(Delayed, AHistoryOfOneStepIsTheMostRecent) { expect_operands_follow({.history = 1}, DType::e5m2); }

/// One step of a layer with the values of a step; returns all codes and descales.
std::vector<std::vector<std::uint8_t>> run_step(OneLayer& layer, std::size_t step, bool skipped = false) {
  std::vector<std::vector<std::uint8_t>> out;
  for (const Operand o : testing::operands) {
    const QTensor q = quantized(layer.stream, layer.operand(o), values_of(o, step));
    for (const Tensor& t : {q.rows.codes, q.cols.codes, q.rows.descales}) out.push_back(testing::bytes(t));
  }
  layer.end_step(skipped);
  return out;
}

TEST(Delayed, ASkippedStepChangesNoState) {
  for (const char* algorithm : {"max", "most_recent"}) {
    OneLayer layer({.recipe = "delayed", .options = {.history = 3, .algorithm = algorithm}});
    for (std::size_t step = 0; step < 4; ++step) run_step(layer, step);
    const auto before = SavedState::of(layer.precision);
    run_step(layer, 8, true);
    EXPECT_TRUE(before == SavedState::of(layer.precision)) << algorithm;
    run_step(layer, 8);
    EXPECT_FALSE(before == SavedState::of(layer.precision)) << algorithm;
  }
}

// A tensor that no step quantized, or only as zeros, keeps its scale.
TEST(Delayed, ATensorOfZerosKeepsItsScale) {
  OneLayer layer({.recipe = "delayed", .options = {.history = 3}});
  run_step(layer, 0);
  const float scale = *layer.plan.x->spec({}).scale.f32();
  const Matrix zeros{16, 32, std::vector<float>(512, 0.0f)};
  for (int step = 0; step < 5; ++step) {
    (void)quantized(layer.stream, *layer.plan.x, zeros);
    layer.end_step();
  }
  EXPECT_EQ(*layer.plan.x->spec({}).scale.f32(), scale);
}

TEST(Delayed, EvaluationLeavesNoTrace) {
  OneLayer layer({.recipe = "delayed", .options = {.history = 3}});
  run_step(layer, 0);
  const auto before = SavedState::of(layer.precision);
  for (const Operand o : testing::operands)
    for (const Pass::Kind kind : {Pass::Kind::evaluate, Pass::Kind::recompute})
      (void)quantized(layer.stream, layer.operand(o), values_of(o, 8), {.kind = kind});
  EXPECT_TRUE(before == SavedState::of(layer.precision));
}

// Passes before the first step, each ended as a step is: after one, the tensor that made the scale fits it.
TEST(Delayed, CalibrationMakesScalesThatFit) {
  EXPECT_EQ(OneLayer({.recipe = "delayed"}).precision.calibration_passes(), 3);
  EXPECT_EQ(OneLayer({.recipe = "delayed", .options = {.calibration = 0}}).precision.calibration_passes(), 0);
  OneLayer layer({.recipe = "delayed", .options = {.calibration = 1}});
  const auto saturated = [&](Operand o) { return layer.precision.slots().health(int(o))->saturated; };
  const auto pass = [&] {
    for (const Operand o : testing::operands) (void)quantized(layer.stream, layer.operand(o), values_of(o, 8));
  };
  for (int i = 0; i < layer.precision.calibration_passes(); ++i) {
    pass();
    EXPECT_GT(saturated(Operand::activation), 0) << "values of 400 and outliers under a scale of 1";
    layer.end_step();
  }
  pass();
  for (const Operand o : testing::operands) EXPECT_EQ(saturated(o), 0) << name(o);
}

TEST(Delayed, ARestoredRunContinuesBitForBit) {
  const PrecisionConfig config{.recipe = "delayed", .options = {.history = 3}};
  OneLayer whole(config), resumed(config), without(config);
  for (std::size_t step = 0; step < 4; ++step) run_step(whole, step);
  const auto saved = SavedState::of(whole.precision);
  EXPECT_EQ(saved.names(), (std::vector<std::string>{"amax_history", "scales.scale", "scales.descale"}));
  saved.restore(resumed.precision);
  for (std::size_t step = 4; step < std::size(magnitudes); ++step) {
    const auto expected = run_step(whole, step);
    EXPECT_EQ(run_step(resumed, step), expected) << "step " << step;
    if (step == 4) {
      EXPECT_NE(run_step(without, step), expected) << "the state matters";
    }
  }
  EXPECT_TRUE(SavedState::of(whole.precision) == SavedState::of(resumed.precision));
}

}  // namespace
}  // namespace octet::scaling
