#include <gtest/gtest.h>

#include <cmath>

#include "octet/comm/threads/threads.hpp"
#include "octet/train/step/readout.hpp"
#include "octet/train/step/small_model.testing.hpp"
#include "tests/testing/floats.hpp"

// Steps on meshes of every shape of 2, 4 and 8 ranks, at every stage of ZeRO, against one rank that runs all their micro-batches. By
// default each recipe has some of the meshes, and OCTET_EXHAUSTIVE=1 gives it all.

namespace octet::train {
namespace {

using namespace octet::train::testing;

struct Mesh {
  int tensor = 1, context = 1, data = 1, pipeline = 1, zero = 0;
  int all() const { return tensor * context * data * pipeline; }
  std::string text() const {
    return format("tensor {} x context {} x data {} x pipeline {}, stage {}", tensor, context, data, pipeline, zero);
  }
};

// Two blocks have at most two stages, and four heads at most four tensor ranks. A pipeline has stages 0 and 1 of ZeRO.
std::vector<Mesh> all_meshes() {
  std::vector<Mesh> out;
  for (const int ranks : {2, 4, 8})
    for (const int pipeline : {1, 2})
      for (const int tensor : {1, 2, 4})
        for (const int context : {1, 2, 4, 8})
          for (const int data : {1, 2, 4, 8})
            for (int zero = 0; zero <= (context * data == 1 ? 0 : pipeline > 1 ? 1 : 3); ++zero)
              if (tensor * context * data * pipeline == ranks) out.push_back({tensor, context, data, pipeline, zero});
  return out;
}

// Those of the n-th of so many recipes.
std::vector<Mesh> meshes_of(std::size_t n, std::size_t recipes) {
  std::vector<Mesh> all = all_meshes(), out;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (octet::testing::exhaustive() || i % recipes == n) out.push_back(all[i]);
  return out;
}

constexpr int micro_batches = 8;  // of a step on all ranks, of 64 tokens

struct Result {
  std::vector<float> gradients;  // of the first step
  std::vector<double> losses;
};

Result steps_on(const std::string& recipe, const Mesh& mesh, int steps) {
  EngineConfig config = small_engine("llama", recipe);
  config.shape.hidden = 128, config.sequence = 64;
  parallel::RanksConfig& ranks = config.ranks;
  ranks.tensor = mesh.tensor, ranks.context = mesh.context, ranks.data = mesh.data, ranks.pipeline = mesh.pipeline, ranks.zero = mesh.zero;
  Result out;
  comm::run_on_threads({.ranks = mesh.all(), .limit_seconds = 30}, [&](comm::Communicator& c) {
    Engine e(config, Device::cpu, machine::machine_target(Device::cpu), &c);
    StepRunner runner = begin_steps(e);
    for (int s = 0; s < steps; ++s) {
      std::vector<data::Batch> own;
      for (int i = e.axes.sequence_group(); i < micro_batches; i += mesh.data)
        own.push_back(random_batch(1, 64, 61, 300 + std::uint64_t(micro_batches * s + i)));
      runner.run(own, {.learning_rate = 1e-2}, [&] {
        const std::vector<float> flat = s == 0 ? e.flat_gradients() : std::vector<float>();
        const Readout shown = read_out(e);
        if (c.rank() > 0) return;
        if (s == 0) out.gradients = flat;
        out.losses.push_back(double(shown.loss));
      });
    }
  });
  return out;
}

double distance(const std::vector<float>& a, const std::vector<float>& b) {
  double squares = 0, of_a = 0;
  EXPECT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    squares += (double(a[i]) - b[i]) * (double(a[i]) - b[i]), of_a += double(a[i]) * a[i];
  return std::sqrt(squares / of_a);
}

TEST(Meshes, OfFp32HaveTheGradientsAndLossesOfOneRank) {
  const int steps = 3;
  const Result one = steps_on("fp32", {}, steps);
  for (const Mesh& mesh : meshes_of(0, 4)) {
    const Result many = steps_on("fp32", mesh, steps);
    EXPECT_LT(distance(one.gradients, many.gradients), 1e-5) << mesh.text();
    for (std::size_t s = 0; s < one.losses.size(); ++s) EXPECT_NEAR(many.losses[s] / one.losses[s], 1, 1e-5) << mesh.text() << ", " << s;
  }
}

constexpr const char* recipes[] = {"bf16", "current", "delayed", "rowwise", "block128", "mxfp8", "global"};

class RecipeOnMeshes : public ::testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(Recipes, RecipeOnMeshes, ::testing::Range<std::size_t>(0, std::size(recipes)),
                         [](const auto& info) { return std::string(recipes[info.param]); });

// One rank's gradients differ from FP32's by the rounding of the recipe. Ranks of a tensor group round each sum of a branch once more, in
// BF16, as TensorRecipe says; ranks of a context group the sums of gradients of keys and values; divided masters are read as BF16 or as
// codes. Each is small beside the rounding of operands to 8 bits, and of the size of one of many roundings in BF16.
TEST_P(RecipeOnMeshes, AreAsNearToFp32AsOneRank) {
  const std::string recipe = recipes[GetParam()];
  const std::vector<float> exact = steps_on("fp32", {}, 1).gradients;
  const Result one = steps_on(recipe, {}, 1);
  const double of_one = distance(exact, one.gradients);
  double most = 0;
  for (const Mesh& mesh : meshes_of(GetParam(), std::size(recipes))) {
    const Result many = steps_on(recipe, mesh, 1);
    const double of_many = distance(exact, many.gradients);
    most = std::max(most, of_many / of_one);
    EXPECT_LT(of_many, 1.25 * of_one) << mesh.text();
    EXPECT_NEAR(many.losses[0] / one.losses[0], 1, 2e-3) << mesh.text();
  }
  RecordProperty("times_one_rank", std::to_string(most));
}

}  // namespace
}  // namespace octet::train
