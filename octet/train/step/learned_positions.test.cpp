#include <gtest/gtest.h>

#include "octet/ops/attention/documents.testing.hpp"
#include "octet/train/checkpoint/mesh_states.testing.hpp"
#include "octet/train/run/dry_run/dry_run.hpp"
#include "octet/train/step/evaluate.hpp"
#include "octet/train/step/generate.hpp"

// Learned positions, LayerNorm and biases of products that ranks divide: the family gpt2 on tensor and context ranks.

namespace octet::train {
namespace {

using namespace octet::train::testing;

EngineConfig config_of(const char* recipe) {
  EngineConfig c = small_engine("gpt2", recipe);
  c.shape.hidden = 128;
  return c;
}

data::Batch batch_of(int number, bool documents) {
  data::Batch b = random_batch(1, 32, 61, 700 + std::uint64_t(number));
  if (documents) b.document_mask = true, b.document_starts = ops::random_document_starts(32, 32, 4, std::uint64_t(number));
  return b;
}

MeshSteps steps_on(const EngineConfig& c, const Mesh& mesh) {
  return steps_on_mesh(c, mesh, 3, 1e-2, [&](int step, int group) {
    std::vector<data::Batch> own;
    for (int i = group; i < 4; i += int(mesh.data)) own.push_back(batch_of(4 * step + i, c.document_mask));
    return own;
  });
}

void expect_near(const EngineConfig& c, const Mesh& mesh, const MeshSteps& one, double tolerance) {
  const MeshSteps many = steps_on(c, mesh);
  EXPECT_LT(distance(one.gradients, many.gradients), tolerance) << mesh.text();
  for (std::size_t s = 0; s < one.losses.size(); ++s) EXPECT_NEAR(many.losses[s] / one.losses[s], 1, tolerance) << mesh.text();
}

TEST(LearnedPositions, OnMeshesHaveTheGradientsAndLossesOfOneRank) {
  for (const bool documents : {false, true}) {
    EngineConfig config = config_of("fp32");
    config.document_mask = documents;
    const MeshSteps one = steps_on(config, {});
    for (const Mesh& mesh : {Mesh{.tensor = 2}, {.context = 2}, {.tensor = 2, .context = 2}}) expect_near(config, mesh, one, 1e-5);
    if (documents) continue;
    for (const Mesh& mesh : {Mesh{.tensor = 4},
                             {.tensor = 2, .data = 2, .zero = 3},
                             {.context = 2, .data = 2, .zero = 2},
                             {.tensor = 2, .pipeline = 2},
                             {.context = 2, .pipeline = 2, .zero = 1}})
      expect_near(config, mesh, one, 1e-5);
  }
}

// Both have the roundings of the precision, by which one rank is off FP32.
TEST(LearnedPositions, OnMeshesHaveTheStepsOfOneRankInEveryPrecision) {
  const MeshSteps exact = steps_on(config_of("fp32"), {});
  for (const char* recipe : {"bf16", "current", "block128"}) {
    EngineConfig config = config_of(recipe);
    config.model.recompute = nn::Recompute::named(std::vector<std::string>{"norm", "activation"});
    const MeshSteps one = steps_on(config, {});
    for (const Mesh& mesh : {Mesh{.tensor = 2}, {.context = 2}})
      expect_near(config, mesh, one, 1.5 * distance(exact.gradients, one.gradients));
  }
}

TEST(LearnedPositions, HaveOneStateOnAllMeshesAndTheMemoryOfTheirPlan) {
  EngineConfig config = config_of("delayed");
  const auto batches = [](int group) { return std::vector{batch_of(group, false)}; };
  const Mesh divided{.tensor = 2, .context = 2}, stages{.tensor = 2, .pipeline = 2};
  for (const Mesh& from : {divided, stages}) expect_one_state(config, from, {{}, divided, stages, {.data = 2, .zero = 3}}, batches);
  for (const Mesh& mesh : {divided, stages, Mesh{.context = 2, .data = 2, .zero = 1}})
    on_mesh(config, mesh, [&](Engine& e, int rank) {
      begin_steps(e).run(batches(0), {.learning_rate = 1e-3, .measure = true});
      evaluate_batch(e, batch_of(1, false));
      EngineConfig planned = config;
      mesh.set(planned.ranks), planned.planned_ranks = int(mesh.data * mesh.context);
      const DryRun dry = dry_run(planned, machine::machine_target(Device::cpu), 1, 1, {.stage = e.axes.pipeline().rank()});
      if (e.ranks().rank() > 0) return;
      EXPECT_EQ(dry.memory.by_category, e.stream.arena().peak().by_category) << mesh.text() << ", rank " << rank;
    });
}

TEST(LearnedPositions, ContinueTextOnTensorRanksAsOnOneRank) {
  std::vector<std::vector<std::int32_t>> continued;
  for (const Mesh& mesh : {Mesh{}, Mesh{.tensor = 2}, Mesh{.tensor = 2, .pipeline = 2}}) {
    std::vector<std::vector<std::int32_t>> ids(std::size_t(mesh.all()), {3, 14, 15, 9, 26});
    on_mesh(config_of("fp32"), mesh, [&](Engine& e, int rank) {
      begin_steps(e);
      generate(e, ids[std::size_t(rank)], 32, {.sampling = {.temperature = 0}, .tokens = 6},
               [](std::size_t, std::int32_t) { return true; });
    });
    continued.insert(continued.end(), ids.begin(), ids.end());
  }
  EXPECT_EQ(continued[0].size(), 11u);
  for (const auto& ids : continued) EXPECT_EQ(ids, continued[0]);
}

TEST(LearnedPositions, TrainAdaptersOnTensorAndContextRanks) {
  EngineConfig config = config_of("fp32");
  config.adapters.rank = 4;
  const MeshSteps one = steps_on(config, {});
  for (const Mesh& mesh : {Mesh{.tensor = 2}, {.context = 2}}) expect_near(config, mesh, one, 1e-5);
}

}  // namespace
}  // namespace octet::train
