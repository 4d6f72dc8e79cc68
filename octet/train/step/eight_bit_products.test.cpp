#include <gtest/gtest.h>

#include <map>

#include "octet/comm/threads/threads.hpp"
#include "octet/train/step/small_model.testing.hpp"

// 8-bit matrix products of ranks, layer by layer, against the plan: what a layer's plan promises is what its GEMMs do.

namespace octet::train {
namespace {

using namespace octet::train::testing;

constexpr int ranks = 2, micro_batches = 2;
constexpr std::int64_t tokens = 32;  // of a micro-batch

// FLOP of a layer's products with 8-bit operands: of forward, and of the two of backward together.
struct Products {
  double forward = 0, backward = 0;
  friend bool operator==(const Products&, const Products&) = default;
};
using OfLayers = std::map<std::string, Products>;

// Layers show their output after the product of forward, and the gradient of their input after both products of backward. No other work
// has 8-bit operands.
class Counter final : public Observer {
 public:
  explicit Counter(const Stream& stream) : stream_(stream) {}
  void observe(std::string_view path, std::string_view what, const Tensor&) override {
    const double now = stream_.work().fp8_flops, more = now - std::exchange(before_, now);
    Products& of = layers[std::string(path)];
    (what == "y" ? of.forward : of.backward) += more;
  }
  void start() { before_ = stream_.work().fp8_flops; }
  OfLayers layers;

 private:
  const Stream& stream_;
  double before_ = 0;
};

// By the plan: a product has 2 FLOP per token and weight. A layer whose plan has 8-bit operands has them in all three.
OfLayers planned(const Engine& e) {
  OfLayers out;
  for (const scaling::PlanRow& row : e.precision.rows()) {
    const double product = 2.0 * double(tokens * row.out * row.in) * micro_batches;
    if (row.out > 0 && row.precision.starts_with("x e4m3")) out[row.path] = {product, 2 * product};
  }
  return out;
}

struct Counted {
  OfLayers ran, planned;
  double all = 0;
  std::string plan;
};

// One step of every rank.
std::vector<Counted> step_of(const EngineConfig& config) {
  std::vector<Counted> out(ranks);
  comm::run_on_threads({.ranks = ranks, .limit_seconds = 30}, [&](comm::Communicator& c) {
    Engine e(config, Device::cpu, machine::machine_target(Device::cpu), &c);
    StepRunner runner = begin_steps(e);
    std::vector<data::Batch> batches;
    for (int m = 0; m < micro_batches; ++m) batches.push_back(random_batch(1, tokens, 61, std::uint64_t(10 * c.rank() + m)));
    Counter counter(e.stream);
    counter.start();
    const double before = e.stream.work().fp8_flops;
    e.stream.set_observer(&counter);
    runner.run(batches, {.learning_rate = 1e-3});
    e.stream.set_observer(nullptr);
    Counted& mine = out[std::size_t(c.rank())];
    mine.all = e.stream.work().fp8_flops - before, mine.planned = planned(e);
    for (const auto& [path, products] : counter.layers)
      if (products != Products{}) mine.ran[path] = products;
    for (const scaling::PlanRow& row : e.precision.rows()) mine.plan += format("{}: {}: {}\n", row.path, row.precision, row.why);
  });
  return out;
}

void expect_as_planned(const EngineConfig& config, std::size_t layers, const std::string& what) {
  for (const Counted& c : step_of(config)) {
    EXPECT_EQ(c.planned.size(), layers) << what << "\n" << c.plan;
    double sum = 0;
    for (const auto& [path, products] : c.planned) {
      const auto ran = c.ran.find(path);
      ASSERT_NE(ran, c.ran.end()) << what << ": " << path << " has no 8-bit product";
      EXPECT_EQ(ran->second.forward, products.forward) << what << ": " << path;
      EXPECT_EQ(ran->second.backward, products.backward) << what << ": " << path;
      sum += products.forward + products.backward;
    }
    EXPECT_EQ(c.ran.size(), layers) << what << ": no other layer has any";
    EXPECT_EQ(c.all, sum) << what;
  }
}

class EightBitRecipe : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(ProductsOfRanks, EightBitRecipe, ::testing::Values("delayed", "current", "rowwise", "block128", "mxfp8", "global"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(EightBitRecipe, RunsTheProductsOfEveryLayerThatThePlanPromisesAtEveryStage) {
  for (const int stage : {0, 1, 2, 3}) {
    EngineConfig config = small_engine("llama", GetParam());
    config.precision.options.history = 4, config.ranks.zero = stage;
    expect_as_planned(config, 8, format("stage {}", stage));
  }
}

// As a model with one linear layer of 4092 columns has it.
TEST_P(EightBitRecipe, LeavesOutAloneTheLayerWhoseDimensionsDoNotFit) {
  for (const int stage : {0, 3}) {
    EngineConfig config = small_engine("llama", GetParam());
    config.shape.hidden = 92, config.precision.options.history = 4, config.ranks.zero = stage;
    const std::string plan = step_of(config)[0].plan;
    for (const char* path : {"layers.0.mlp.down: bf16: ", "layers.1.mlp.gate_up: bf16: "}) {
      const std::size_t at = plan.find(path);
      ASSERT_NE(at, plan.npos) << plan;
      EXPECT_NE(plan.substr(at, 120).find(" is not a multiple of "), std::string::npos) << plan;
    }
    expect_as_planned(config, 4, format("stage {}", stage));
  }
}

TEST(ProductsOfRanks, WithoutAnEightBitRecipeAreNone) {
  for (const Counted& c : step_of(small_engine("llama", "bf16"))) EXPECT_TRUE(c.ran.empty() && c.planned.empty() && c.all == 0);
}

}  // namespace
}  // namespace octet::train
