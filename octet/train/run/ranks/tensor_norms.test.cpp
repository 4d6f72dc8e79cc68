#include <gtest/gtest.h>

#include "octet/comm/dry_run/dry_run.hpp"
#include "octet/train/checkpoint/mesh_states.testing.hpp"
#include "octet/train/run/dry_run/dry_run.hpp"
#include "octet/train/step/evaluate.hpp"
#include "octet/train/step/generate.hpp"
#include "tests/testing/floats.hpp"

// Tensor ranks of models whose norms of queries and keys read all heads: ranks add up the sums of their own columns.

namespace octet::train {
namespace {

using namespace octet::train::testing;

constexpr std::int64_t layers = 2, tokens = 32;  // of a micro-batch

// Two key heads, of which four ranks have copies.
EngineConfig dense_config(const std::string& recipe) {
  EngineConfig c = small_engine("olmo2", recipe);
  c.shape.hidden = 128, c.shape.tied = false, c.shape.head_dim = 32, c.shape.width = 128, c.sequence = tokens;
  return c;
}

EngineConfig expert_config(const std::string& recipe) {
  EngineConfig c = dense_config(recipe);
  c.shape.family = "olmoe", c.shape.clip_qkv = 0.5;
  c.shape.experts = {.number = 4, .chosen = 2, .width = 64, .balance = {.over = nn::Balance::Over::model, .loss = 0.05}};
  return c;
}

std::vector<data::Batch> batches_of(int step, std::int64_t groups, int group) {
  std::vector<data::Batch> out;
  for (int i = group; i < 2; i += int(groups)) out.push_back(random_batch(1, tokens, 61, 500 + std::uint64_t(2 * step + i)));
  return out;
}

MeshSteps steps_on(const EngineConfig& config, const Mesh& mesh, int steps) {
  return steps_on_mesh(config, mesh, steps, 1e-3, [&](int step, int group) { return batches_of(step, mesh.data, group); });
}

void expect_near(const EngineConfig& config, const MeshSteps& one, const std::vector<Mesh>& meshes) {
  for (const Mesh& mesh : meshes) {
    const MeshSteps many = steps_on(config, mesh, int(one.losses.size()));
    EXPECT_LT(distance(one.gradients, many.gradients), 1e-5) << config.shape.family << ", " << mesh.text();
    EXPECT_NEAR(many.norm / one.norm, 1, 1e-5) << config.shape.family << ", " << mesh.text();
    for (std::size_t s = 0; s < one.losses.size(); ++s)
      EXPECT_NEAR(many.losses[s] / one.losses[s], 1, 1e-5) << config.shape.family << ", " << mesh.text() << ", " << s;
  }
}

TEST(TensorNorms, OfAllHeadsHaveTheGradientsAndLossesOfOneRank) {
  const EngineConfig dense = dense_config("fp32");
  expect_near(dense, steps_on(dense, {}, 20),
              {{.tensor = 2}, {.tensor = 4}, {.tensor = 2, .data = 2, .zero = 3}, {.tensor = 2, .pipeline = 2}});
  const EngineConfig experts = expert_config("fp32");
  std::vector<Mesh> meshes{{.tensor = 4}, {.tensor = 2, .data = 2, .zero = 2, .expert = 2}};
  if (octet::testing::exhaustive())
    for (const Mesh& more : std::vector<Mesh>{{.tensor = 2, .data = 2, .zero = 1},
                                              {.tensor = 2, .data = 2, .zero = 3, .expert = 2},
                                              {.tensor = 4, .data = 2, .zero = 2, .expert = 2}})
      meshes.push_back(more);
  expect_near(experts, steps_on(experts, {}, 20), meshes);
  expect_near(experts, steps_on(experts, {}, 2), {{.tensor = 2, .context = 2}});
}

// Rows are saved as codes, and sums are made again where parts are recomputed.
TEST(TensorNorms, OfAllHeadsHaveTheSameBitsWhateverIsRecomputed) {
  for (const char* recipe : {"current", "block128"}) {
    EngineConfig config = expert_config(recipe);
    config.precision.activations = scaling::SavedActivations::fp8;
    const MeshSteps one = steps_on(config, {}, 1), two = steps_on(config, {.tensor = 2}, 1);
    EXPECT_LT(distance(one.gradients, two.gradients), 0.2) << recipe;
    for (const char* part : {"block", "attention"}) {
      config.model.recompute = nn::Recompute::named(std::vector<std::string>{part});
      EXPECT_EQ(steps_on(config, {.tensor = 2}, 1).gradients, two.gradients) << recipe << ", " << part;
    }
  }
}

TEST(TensorNorms, OfAllHeadsHaveTheMemoryAndTheWorkOfTheirPlan) {
  EngineConfig config = expert_config("block128");
  config.precision.activations = scaling::SavedActivations::fp8;
  const Mesh mesh{.tensor = 2, .data = 2, .zero = 3, .expert = 2};
  mesh.set(config.ranks), config.planned_ranks = int(mesh.data);
  const DryRun dry = dry_run(config, machine::machine_target(Device::cpu), 1, 1);
  on_mesh(config, mesh, [&](Engine& e, int rank) {
    const auto batches = [&](int step) { return batches_of(step, 2, e.axes.sequence_group()); };
    StepRunner runner = begin_steps(e);
    runner.run(batches(0), {.learning_rate = 1e-3});
    const Work before = e.stream.work();
    runner.run(batches(1), {.learning_rate = 1e-3});
    const Work real = e.stream.work() - before;
    runner.run(batches(2), {.learning_rate = 1e-3, .measure = true});
    evaluate_batch(e, batches(0)[0]);
    if (rank > 0) return;
    EXPECT_EQ(dry.memory.by_category, e.stream.arena().peak().by_category);
    EXPECT_EQ(dry.step.gemm_flops, real.gemm_flops);
    EXPECT_EQ(dry.step.collectives, real.collectives);
    EXPECT_EQ(dry.step.sent_bytes, real.sent_bytes);
  });
}

// Per block and direction a sum of two numbers in FP32 per token, of which a rank of two sends as much as they have. No other sum grows
// with the tokens.
TEST(TensorNorms, OfAllHeadsSendTheBytesOfTheFormula) {
  const auto bytes_of_sums = [](const std::string& family, int rows) {
    EngineConfig config = dense_config("bf16");
    config.shape.family = family, config.ranks.tensor = 2;
    comm::DryRunCommunicator two(2);
    Engine e(config, Device::null, {}, &two);
    StepRunner runner = begin_steps(e);
    data::Batch batch;
    batch.rows = rows, batch.length = tokens;
    const std::int64_t before = e.axes.tensor().traffic(comm::Collective::all_reduce).bytes;
    runner.run(std::vector{batch}, {});
    return e.axes.tensor().traffic(comm::Collective::all_reduce).bytes - before;
  };
  EXPECT_EQ(bytes_of_sums("olmo2", 3) - bytes_of_sums("olmo2", 1), layers * 2 * (2 * 2 * tokens) * 4);
  EXPECT_EQ(bytes_of_sums("qwen3", 3), bytes_of_sums("qwen3", 1));
}

TEST(TensorNorms, OfAllHeadsHaveAStateThatIsTheSameOnEveryOtherMesh) {
  const std::vector<Mesh> meshes{{.tensor = 2}, {.tensor = 4}, {.tensor = 2, .data = 2, .zero = 3, .expert = 2}, {.data = 2, .zero = 1}};
  const EngineConfig config = expert_config("bf16");
  for (const Mesh& from : {meshes[1], meshes[2]})
    expect_one_state(config, from, meshes, [&](int group) { return batches_of(0, from.data, group); });
}

TEST(TensorNorms, OfAllHeadsEvaluateAndContinueTextAsOneRank) {
  std::vector<std::vector<std::int32_t>> continued;
  std::vector<double> losses;
  for (const Mesh& mesh : {Mesh{}, {.tensor = 2}}) {
    std::vector<std::vector<std::int32_t>> ids(std::size_t(mesh.all()), {3, 14, 15, 9, 26});
    on_mesh(dense_config("fp32"), mesh, [&](Engine& e, int rank) {
      begin_steps(e);
      generate(e, ids[std::size_t(rank)], tokens, {.sampling = {.temperature = 0}, .tokens = 6},
               [](std::size_t, std::int32_t) { return true; });
      const double loss = evaluate_batch(e, random_batch(2, tokens, 61, 7)).loss;
      if (rank == 0) losses.push_back(loss);
    });
    continued.insert(continued.end(), ids.begin(), ids.end());
  }
  for (const auto& ids : continued) EXPECT_EQ(ids, continued[0]);
  EXPECT_NEAR(losses[1] / losses[0], 1, 1e-6);
}

}  // namespace
}  // namespace octet::train
