#include <gtest/gtest.h>

#include "octet/train/checkpoint/mesh_states.testing.hpp"
#include "octet/train/run/dry_run/dry_run.hpp"
#include "octet/train/step/evaluate.hpp"

// A tied embedding, which is a table and a matrix of the head, where several axes divide or copy it.

namespace octet::train {
namespace {

using namespace octet::train::testing;

EngineConfig config_of(const char* recipe) {
  EngineConfig c = small_engine("qwen3", recipe);
  c.shape.layers = 4, c.shape.hidden = 128;
  return c;
}

// micro_batches: of a step on all ranks.
std::vector<data::Batch> batches_of(int step, std::int64_t groups, int group, int micro_batches = 4) {
  std::vector<data::Batch> own;
  for (int i = group; i < micro_batches; i += int(groups))
    own.push_back(random_batch(1, 32, 61, 500 + std::uint64_t(micro_batches * step + i)));
  return own;
}

MeshSteps steps_on(const EngineConfig& c, const Mesh& mesh, int micro_batches = 4) {
  return steps_on_mesh(c, mesh, 3, 1e-2, [&](int step, int group) { return batches_of(step, mesh.data, group, micro_batches); });
}

void expect_near(const EngineConfig& c, const Mesh& mesh, const MeshSteps& one, double tolerance = 1e-5, int micro_batches = 4) {
  const MeshSteps many = steps_on(c, mesh, micro_batches);
  EXPECT_LT(distance(one.gradients, many.gradients), tolerance) << mesh.text();
  EXPECT_NEAR(many.norm / one.norm, 1, tolerance) << mesh.text();
  for (std::size_t s = 0; s < one.losses.size(); ++s) EXPECT_NEAR(many.losses[s] / one.losses[s], 1, tolerance) << mesh.text();
}

/// On every first data rank, the arena's peak is that of the dry run of its stage. Others may have fewer padded blocks.
void expect_planned_memory(const EngineConfig& config, const Mesh& mesh) {
  on_mesh(config, mesh, [&](Engine& e, int rank) {
    const std::vector<data::Batch> batches = batches_of(0, mesh.data, e.axes.sequence_group());
    begin_steps(e).run(batches, {.learning_rate = 1e-3, .measure = true});
    evaluate_batch(e, batches.front());
    EngineConfig planned = config;
    mesh.set(planned.ranks), planned.planned_ranks = int(mesh.data * mesh.context);
    const DryRun dry = dry_run(planned, machine::machine_target(Device::cpu), 1, 4 / mesh.data, {.stage = e.axes.pipeline().rank()});
    if (e.ranks().rank() > 0) return;
    EXPECT_EQ(dry.memory.by_category, e.stream.arena().peak().by_category) << mesh.text() << ", rank " << rank;
  });
}

TEST(TiedTables, OnTensorRanksOfStagesHaveTheGradientsAndLossesOfOneRank) {
  EngineConfig config = config_of("fp32");
  const MeshSteps one = steps_on(config, {});
  expect_near(config, {.tensor = 2, .pipeline = 2}, one);
  expect_near(config, {.tensor = 2, .data = 2, .pipeline = 2, .zero = 1}, one);
  config.ranks.schedule = parallel::Schedule::zero_bubble;
  expect_near(config, {.tensor = 4, .pipeline = 2}, one);
  config.ranks.schedule = parallel::Schedule::one_f_one_b;
  config.adapters.rank = 4;  // the table is frozen on both ends
  const MeshSteps adapters = steps_on(config, {});
  expect_near(config, {.tensor = 2, .pipeline = 2}, adapters);
}

TEST(TiedTables, OnTensorRanksOfStagesHaveOneStateAndTheMemoryOfTheirPlan) {
  const EngineConfig config = config_of("current");
  const Mesh divided{.tensor = 2, .pipeline = 2}, all{.tensor = 2, .data = 2, .pipeline = 2, .zero = 1};
  const auto batches = [](int group) { return batches_of(0, 2, group); };
  expect_one_state(config, divided, {{}, {.pipeline = 3}, {.tensor = 2}, {.data = 2, .zero = 1}}, batches);
  expect_one_state(config, {.data = 2}, {divided, all}, batches);
  expect_planned_memory(config, divided);
  expect_planned_memory(config, all);
}

// On the first stage, which has both ends, parts of the gradient come from different micro-batches.
TEST(TiedTables, ThereAndBackHaveTheGradientsAndLossesOfOneRank) {
  EngineConfig config = config_of("fp32");
  config.ranks.schedule = parallel::Schedule::dualpipe_v;
  const MeshSteps one = steps_on(config, {}, 8);
  for (const Mesh& mesh : {Mesh{.pipeline = 2}, {.data = 2, .pipeline = 2, .zero = 1}, {.tensor = 2, .pipeline = 2}})
    expect_near(config, mesh, one, 1e-5, 8);
  config.precision.recipe = "delayed";
  expect_near(config, {.pipeline = 2}, steps_on(config, {}), 1e-3);  // a code of a later step may be another
  expect_planned_memory(config, {.pipeline = 2});
}

// Also in 8 bits, whose scales are those of whole tables.
TEST(TiedTables, AreTheSameOnBothEndsOfEachTensorRank) {
  EngineConfig config = config_of("current");
  config.optimizer->level = optim::Level::O1;
  std::vector<float> copies[4];
  on_mesh(config, {.tensor = 2, .pipeline = 2}, [&](Engine& e, int rank) {
    StepRunner runner = begin_steps(e);
    for (int step = 0; step < 3; ++step) runner.run(batches_of(step, 1, 0), {.learning_rate = 1e-2});
    copies[rank] = nn::flat_values(e.stream, {e.model->shared_by_ends()->value});
  });
  EXPECT_EQ(copies[0], copies[2]);
  EXPECT_EQ(copies[1], copies[3]);
  EXPECT_NE(copies[0], copies[1]);
}

}  // namespace
}  // namespace octet::train
