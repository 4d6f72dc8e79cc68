#include <gtest/gtest.h>

#include <map>

#include "octet/nn/linear.hpp"
#include "octet/train/checkpoint/slices.testing.hpp"
#include "octet/train/step/readout.hpp"
#include "tests/testing/scratch.hpp"

// Weights that ranks exchange as 8-bit codes, against those that one rank encodes from the same masters.

namespace octet::train {
namespace {

using octet::testing::Scratch;

struct Layout {
  int ranks;
  std::int64_t zero;
};

// Sides are no multiples of 128, and parts of ranks cut through rows and blocks.
EngineConfig config_of(const std::string& recipe, optim::Level level, const Layout& layout) {
  EngineConfig config = testing::small_engine("llama", recipe);
  config.shape.layers = 1, config.shape.width = 160, config.shape.head_dim = 40, config.shape.hidden = 208;
  config.precision.options.history = 4, config.optimizer->level = level, config.ranks.zero = layout.zero;
  return config;
}

struct Layer {
  bool coded;
  std::vector<float> rows, cols;  // as GEMMs read them
};
using Layers = std::map<std::string, Layer>;

std::vector<float> values_of(const Quantized& q) {
  std::vector<float> out;
  for (std::int64_t r = 0; r < q.rows(); ++r)
    for (std::int64_t c = 0; c < q.cols(); ++c) out.push_back(value_at(q, r, c));
  return out;
}

Layers layers_of(Engine& e) {
  struct Collect final : nn::Visitor {
    Engine& e;
    Layers out;
    explicit Collect(Engine& e) : e(e) {}
    void block(int number) override { e.model->open(e.stream, number); }
    void linear(nn::LinearSite& l) override {
      const Scope scope(e.stream);
      out[l.path()] = {bool(l.weight().parameter().codes), values_of(l.weight().operand(e.stream, nn::Weight::Side::rows)),
                       values_of(l.weight().operand(e.stream, nn::Weight::Side::cols))};
    }
  } collect(e);
  e.model->visit(collect);
  return collect.out;
}

Engine engine_of(const EngineConfig& c, comm::Communicator* ranks = nullptr) {
  return Engine(c, Device::cpu, machine::machine_target(Device::cpu), ranks);
}

// `coded`: of the layers of blocks.
void expect_codes_of_one_rank(const EngineConfig& config, int ranks, const std::function<bool(const std::string&)>& coded) {
  const std::string what =
      format("{} at {}, {} ranks, stage {}", config.precision.recipe, config.optimizer->level, ranks, config.ranks.zero);
  const Scratch scratch;
  std::vector<Layers> all;
  all.resize(std::size_t(ranks));
  comm::run_on_threads({.ranks = ranks, .limit_seconds = 30}, [&](comm::Communicator& c) {
    Engine e = engine_of(config, &c);
    testing::train_steps(e, 2);
    all[std::size_t(c.rank())] = layers_of(e);
    testing::save(e, c.rank(), scratch.at("."));
  });
  Engine one = engine_of(config);
  testing::load(one, scratch.at("."));
  const StepRunner quantized(one);
  for (const auto& [path, wanted] : layers_of(one))
    for (const Layers& of_rank : all) {
      const Layer& got = of_rank.at(path);
      EXPECT_EQ(got.coded, ranks > 1 && path != "lm_head" && coded(path)) << path << " of " << what;
      if (!got.coded && ranks > 1 && path != "lm_head") continue;  // codes of copies differ
      EXPECT_EQ(got.rows, wanted.rows) << path << " of " << what;
      EXPECT_EQ(got.cols, wanted.cols) << path << " of " << what;
    }
}
constexpr auto all_layers = [](const std::string&) { return true; };

class CodedWeights : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Ranks, CodedWeights, ::testing::Values("current", "delayed", "global", "block128"));

TEST_P(CodedWeights, AreThoseThatOneRankMakesOfTheSameMastersAtEveryLevel) {
  for (const auto& [level, layout] : {std::pair{optim::Level::O0, Layout{1, 1}},
                                      {optim::Level::O0, Layout{2, 1}},
                                      {optim::Level::O1, Layout{3, 2}},
                                      {optim::Level::O2, Layout{8, 1}},
                                      {optim::Level::O3, Layout{4, 3}},
                                      {optim::Level::O3, Layout{3, 1}}})
    expect_codes_of_one_rank(config_of(GetParam(), level, layout), layout.ranks, all_layers);
}

TEST(CodedWeights, AreThoseOfOneRankAtEveryStageWithCodesCachedOrOnDemand) {
  for (const Layout layout : {Layout{2, 2}, {4, 1}, {4, 2}, {8, 2}, {2, 3}, {3, 3}, {8, 3}})
    for (const auto weights : {scaling::WeightCodes::cached, scaling::WeightCodes::on_demand}) {
      EngineConfig config = config_of("block128", optim::Level::O2, layout);
      config.precision.weights = weights;
      expect_codes_of_one_rank(config, layout.ranks, all_layers);
    }
}

// A block of three kinds: codes by one scale, codes whose orientations differ, and values.
TEST(CodedWeights, OfABlockWhoseLayersDifferAreCodesWhereTheyCanBe) {
  for (const Layout layout : {Layout{2, 1}, {3, 3}}) {
    EngineConfig config = config_of("current", optim::Level::O0, layout);
    config.precision.rules = {{.path = "layers.*.mlp.down", .recipe = "mxfp8"}};
    config.precision.keep_bf16 = {"layers.*.attn.out"};
    expect_codes_of_one_rank(config, layout.ranks,
                             [](const std::string& path) { return !path.ends_with("mlp.down") && !path.ends_with("attn.out"); });
  }
}

TEST(CodedWeights, AreNotSentWhereMeansOfWeightsAreKept) {
  EngineConfig config = config_of("current", optim::Level::O0, {2, 1});
  config.average = true;
  expect_codes_of_one_rank(config, 2, [](const std::string&) { return false; });
}

// Of the first step, whose weights are equal on any number of ranks.
std::vector<ops::QuantizeHealth> health_of_weights(const EngineConfig& config, int ranks) {
  std::vector<ops::QuantizeHealth> out;
  comm::run_on_threads({.ranks = ranks, .limit_seconds = 30}, [&](comm::Communicator& c) {
    Engine e = engine_of(config, &c);
    StepRunner runner = testing::begin_steps(e);
    runner.run(std::vector{testing::random_batch(1, 32, 61, 5)}, {.learning_rate = 1e-2, .measure = true}, [&] {
      const Readout shown = read_out(e);
      for (std::size_t i = 0; i < shown.health.size() && c.rank() == 0; ++i)
        if (e.precision.slots().slots()[i].operand == scaling::Operand::weight) out.push_back(shown.health[i]);
    });
  });
  return out;
}

TEST(CodedWeights, CountEachValueOnceInTheHealthOfAllRanks) {
  for (const char* recipe : {"current", "global", "block128"}) {
    EngineConfig config = config_of(recipe, optim::Level::O0, {3, 1});
    const std::vector<ops::QuantizeHealth> one = health_of_weights(config, 1), three = health_of_weights(config, 3);
    ASSERT_EQ(one.size(), three.size());
    ASSERT_GE(one.size(), 4u);
    for (std::size_t i = 0; i < one.size(); ++i) {
      EXPECT_GT(one[i].values, 0) << recipe;
      EXPECT_EQ(one[i].values, three[i].values) << recipe;
      EXPECT_EQ(one[i].saturated, three[i].saturated) << recipe;
      EXPECT_EQ(one[i].flushed, three[i].flushed) << recipe;
      EXPECT_EQ(one[i].scale_min, three[i].scale_min) << recipe;
      EXPECT_EQ(one[i].scale_max, three[i].scale_max) << recipe;
      EXPECT_GT(one[i].noise, 0) << recipe;
      EXPECT_NEAR(one[i].noise, three[i].noise, 1e-9 * one[i].noise) << recipe;
      EXPECT_NEAR(one[i].signal, three[i].signal, 1e-9 * one[i].signal) << recipe;
    }
  }
}

// A scale of its own makes codes stale: a layer never multiplies codes of older weights.
TEST(CodedWeights, OfAnOlderWeightAreRefused) {
  EngineConfig config = config_of("current", optim::Level::O0, {2, 1});
  comm::run_on_threads({.ranks = 2, .limit_seconds = 30}, [&](comm::Communicator& c) {
    Engine e = engine_of(config, &c);
    testing::begin_steps(e);
    e.publish_weights();
    EXPECT_THROW(e.model->refresh(e.stream, {}), ContractError);
    e.quantize_weights({});
    EXPECT_NO_THROW(e.model->refresh(e.stream, {}));
  });
}

}  // namespace
}  // namespace octet::train
