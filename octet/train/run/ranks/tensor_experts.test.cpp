#include <gtest/gtest.h>

#include "octet/train/checkpoint/mesh_states.testing.hpp"
#include "octet/train/run/dry_run/dry_run.hpp"
#include "octet/train/step/evaluate.hpp"
#include "octet/train/step/generate.hpp"
#include "octet/train/step/meshes.testing.hpp"
#include "octet/train/step/weights.hpp"
#include "tests/testing/floats.hpp"
#include "tests/testing/saved_state.hpp"
#include "tests/testing/scratch.hpp"

// Tensor ranks of models with experts: attention is divided among them, experts compute the own rows of each.

namespace octet::train {
namespace {

using namespace octet::train::testing;
using octet::testing::SavedState, octet::testing::Scratch;

// With a latent of queries or none, a dense layer, shared experts and biases.
EngineConfig latent_config(const std::string& recipe, const std::string& family = "deepseek_v3") {
  EngineConfig c = small_engine(family, recipe);
  c.shape.width = 128, c.shape.layers = 3, c.shape.tied = false, c.sequence = 32, c.shape.latent = small_latent(c.shape);
  c.shape.experts = {.number = 4, .chosen = 2, .width = 64, .shared = 1};
  nn::Balance& balance = c.shape.experts.balance;
  balance = {.over = nn::Balance::Over::layer, .loss = 0.01, .z_loss = 1e-3};
  c.shape.experts.first_dense = 1;
  if (family == "deepseek_v2") {
    c.shape.latent.query_rank = 0;
  } else {
    c.shape.experts.score = ops::Routing::Score::sigmoid, c.shape.experts.normalize = true, c.shape.experts.biased = true;
    balance.bias_rate = 1e-3;
  }
  return c;
}

// With grouped heads, and the loss of all layers together.
EngineConfig grouped_config(const std::string& recipe, const std::string& family = "qwen3_moe") {
  EngineConfig c = small_engine(family, recipe);
  c.shape.width = 128, c.shape.head_dim = 32, c.shape.tied = false, c.sequence = 32;
  c.shape.experts = {.number = 4, .chosen = 2, .width = 64, .normalize = family == "qwen3_moe"};
  c.shape.experts.balance = {.over = nn::Balance::Over::model, .loss = 0.05};
  return c;
}

data::Batch batch_of(int step, int i) { return random_batch(1, 32, 61, 500 + std::uint64_t(4 * step + i)); }

// Four micro-batches on all ranks.
std::vector<data::Batch> batches_of(int step, std::int64_t groups, int group) {
  std::vector<data::Batch> out;
  for (int i = group; i < 4; i += int(groups)) out.push_back(batch_of(step, i));
  return out;
}

MeshSteps steps_on(const EngineConfig& config, const Mesh& mesh, int steps = 2) {
  return steps_on_mesh(config, mesh, steps, 1e-2, [&](int step, int group) { return batches_of(step, mesh.data, group); });
}

void expect_near(const EngineConfig& config, const MeshSteps& one, const std::vector<Mesh>& meshes, double bound = 1e-5) {
  for (const Mesh& mesh : meshes) {
    const MeshSteps many = steps_on(config, mesh, int(one.losses.size()));
    EXPECT_LT(distance(one.gradients, many.gradients), bound) << config.shape.family << ", " << mesh.text();
    EXPECT_NEAR(many.norm / one.norm, 1, bound) << config.shape.family << ", " << mesh.text();
    for (std::size_t s = 0; s < one.losses.size(); ++s)
      EXPECT_NEAR(many.losses[s] / one.losses[s], 1, bound) << config.shape.family << ", " << mesh.text() << ", " << s;
  }
}

// Several steps, so that losses follow from updated weights and biases of routers.
TEST(TensorExperts, HaveTheGradientsLossesAndBiasesOfOneRank) {
  const EngineConfig config = latent_config("fp32");
  std::vector<Mesh> meshes{{.tensor = 4},
                           {.tensor = 2, .data = 2, .zero = 2},
                           {.tensor = 2, .data = 2, .expert = 2},
                           {.tensor = 2, .data = 2, .zero = 3, .expert = 2},
                           {.tensor = 2, .data = 2, .pipeline = 2, .zero = 1, .expert = 2}};
  if (octet::testing::exhaustive())
    for (const Mesh& more : std::vector<Mesh>{{.tensor = 2},
                                              {.tensor = 2, .data = 2},
                                              {.tensor = 2, .data = 2, .zero = 1},
                                              {.tensor = 2, .data = 2, .zero = 3},
                                              {.tensor = 2, .data = 2, .zero = 1, .expert = 2},
                                              {.tensor = 2, .data = 4, .zero = 2, .expert = 2, .shard = 2},
                                              {.tensor = 2, .pipeline = 2}})
      meshes.push_back(more);
  expect_near(config, steps_on(config, {}), meshes);
}

TEST(TensorExperts, OfOtherFamiliesHaveTheGradientsAndLossesOfOneRank) {
  const std::vector<Mesh> meshes{{.tensor = 2, .data = 2, .zero = 1, .expert = 2}};
  for (const EngineConfig& config : {latent_config("fp32", "deepseek_v2"), grouped_config("fp32"), grouped_config("fp32", "mixtral"),
                                     grouped_config("fp32", "deepseek_moe")})
    expect_near(config, steps_on(config, {}), meshes);
  EngineConfig shared = grouped_config("fp32");
  shared.shape.kv_heads = 1;  // ranks share key heads, and have parts of sequences
  expect_near(shared, steps_on(shared, {}), {{.tensor = 2, .context = 2, .data = 2, .zero = 2, .expert = 2}});
}

// Each of three sequences of a micro-batch has its own choices. Of two ranks, each has one and a half of them; of four, three quarters.
// Sums of choices are exact.
TEST(TensorExperts, WithALossOfSequencesHaveTheGradientsAndLossesOfOneRank) {
  for (const char* family : {"deepseek_v2", "deepseek_v3"}) {
    EngineConfig config = latent_config("fp32", family);
    config.shape.experts.balance.over = nn::Balance::Over::sequence, config.shape.experts.balance.loss = 0.5;
    const auto on = [&](const EngineConfig& c, const Mesh& mesh) {
      return steps_on_mesh(c, mesh, 2, 1e-2, [&](int step, int group) {
        std::vector<data::Batch> out;
        for (int i = group; i < 2; i += int(mesh.data)) out.push_back(random_batch(3, 32, 61, 700 + std::uint64_t(2 * step + i)));
        return out;
      });
    };
    const MeshSteps one = on(config, {});
    std::vector<Mesh> meshes{{.tensor = 4}, {.tensor = 2, .data = 2, .zero = 2, .expert = 2}};
    if (octet::testing::exhaustive()) meshes.push_back({.tensor = 2, .data = 2, .pipeline = 2, .zero = 1, .expert = 2});
    for (const Mesh& mesh : meshes) {
      const MeshSteps many = on(config, mesh);
      EXPECT_LT(distance(one.gradients, many.gradients), 1e-5) << family << ", " << mesh.text();
      for (std::size_t s = 0; s < 2; ++s) EXPECT_NEAR(many.losses[s] / one.losses[s], 1, 1e-5) << family << ", " << mesh.text();
    }
    config.shape.experts.balance.over = nn::Balance::Over::layer;
    EXPECT_GT(distance(one.gradients, on(config, {}).gradients), 1e-4) << family << ": the loss has no effect";
  }
}

// Experts' operands have scales of the own rows, as on data ranks; rounded sums can choose other experts.
TEST(TensorExperts, OfEveryRecipeAreNearOneRankAndHaveTheSameBitsWhateverIsRecomputed) {
  for (const auto& [recipe, bound] : {std::pair("bf16", 0.03), {"current", 0.2}, {"delayed", 0.2}, {"block128", 0.15}, {"mxfp8", 0.15}}) {
    const bool all = octet::testing::exhaustive();
    if (!all && (recipe == std::string("bf16") || recipe == std::string("mxfp8"))) continue;
    EngineConfig config = latent_config(recipe);
    const MeshSteps one = steps_on(config, {}), many = steps_on(config, {.tensor = 2, .data = 2, .zero = 1, .expert = 2});
    EXPECT_LT(distance(one.gradients, many.gradients), bound) << recipe;
    EXPECT_NEAR(many.losses[1] / one.losses[1], 1, 0.01) << recipe;
    const Mesh two{.tensor = 2};
    const MeshSteps plain = steps_on(config, two, 1);
    for (const char* part : {"block", "norm"}) {
      if (!all && part == std::string("norm") && recipe != std::string("block128")) continue;
      config.model.recompute = nn::Recompute::named(std::vector<std::string>{part});
      EXPECT_EQ(steps_on(config, two, 1).gradients, plain.gradients) << recipe << ", " << part;
    }
  }
}

// Copies' gradients are added as codes, with the error of such sums among data ranks.
TEST(TensorExperts, WithGradientsInEightBitsAreNearTheirSums) {
  EngineConfig config = grouped_config("fp32");
  const MeshSteps exact = steps_on(config, {}, 1);
  config.optimizer->gradients = Storage::e4m3;
  for (const Mesh& mesh : {Mesh{.tensor = 2}, {.tensor = 2, .data = 2, .zero = 1}, {.tensor = 2, .data = 2, .zero = 2, .expert = 2}}) {
    const double error = distance(exact.gradients, steps_on(config, mesh, 1).gradients);
    EXPECT_GT(error, 1e-3) << mesh.text() << ": nothing was rounded";
    EXPECT_LT(error, 2 * 0.0625) << mesh.text();
  }
}

TEST(TensorExperts, HaveTheMemoryAndTheWorkOfTheirPlan) {
  for (const auto& [recipe, zero] : {std::pair("current", 0), {"block128", 0}, {"block128", 3}}) {
    EngineConfig config = latent_config(recipe);
    if (zero == 0) config.precision.activations = scaling::SavedActivations::fp8, config.optimizer->level = optim::Level::O3;
    config.optimizer->m = Storage::bf16;
    const Mesh mesh{.tensor = 2, .data = 2, .zero = zero, .expert = 2};
    mesh.set(config.ranks), config.planned_ranks = int(mesh.data);
    const DryRun dry = dry_run(config, machine::machine_target(Device::cpu), 1, 2);
    on_mesh(config, mesh, [&](Engine& e, int rank) {
      const auto batches = [&](int step) { return batches_of(step, 2, e.axes.sequence_group()); };
      StepRunner runner = begin_steps(e);
      runner.run(batches(0), {.learning_rate = 1e-2});
      const Work before = e.stream.work();
      runner.run(batches(1), {.learning_rate = 1e-2});
      const Work real = e.stream.work() - before;
      runner.run(batches(2), {.learning_rate = 1e-2, .measure = true});
      evaluate_batch(e, batch_of(0, e.axes.sequence_group()));
      if (rank > 0) return;
      EXPECT_EQ(dry.memory.by_category, e.stream.arena().peak().by_category) << recipe << zero;
      EXPECT_EQ(dry.step.gemm_flops, real.gemm_flops) << recipe << zero;
      EXPECT_EQ(dry.step.fp8_flops, real.fp8_flops) << recipe << zero;
      EXPECT_EQ(dry.step.collectives, real.collectives) << recipe << zero;
      EXPECT_EQ(dry.step.sent_bytes, real.sent_bytes) << recipe << zero;
    });
  }
}

// As Tensor.SendsTheBytesOfTheFormula, where half of the branches exchange rows: those of attention. Gradients of copies are sums of FP32,
// of which a rank of two sends as much as they have.
TEST(TensorExperts, SendTheBytesOfTheFormula) {
  EngineConfig config = grouped_config("bf16");
  config.ranks.tensor = 2;
  comm::DryRunCommunicator two(2);
  Engine e(config, Device::null, {}, &two);
  StepRunner runner = begin_steps(e);
  data::Batch batch;
  batch.rows = 2, batch.length = 32;
  const auto sent = [&](comm::Collective c) { return e.axes.tensor().traffic(c).bytes; };
  const std::int64_t gathers = sent(comm::Collective::all_gather), reduces = sent(comm::Collective::reduce_scatter);
  const std::int64_t sums = sent(comm::Collective::all_reduce);
  runner.run(std::vector{batch}, {});
  const double values = 64 * 128 / 2.0, layers = 2;
  EXPECT_EQ(double(sent(comm::Collective::all_gather) - gathers), values * (2 * layers + 2) * 2 + 64 * 3 * 4);
  EXPECT_EQ(double(sent(comm::Collective::reduce_scatter) - reduces), values * (2 * layers + 2) * 2);
  // Of a layer: experts, the router, norms of width 128 and of heads of 32. The rest is padding of the norms to 256 values, tables of loads
  // and small sums.
  const double copies = 4 * (layers * (4 * 3 * 64 * 128 + 4 * 128 + 2 * 128 + 2 * 32) + 128);
  EXPECT_GE(double(sent(comm::Collective::all_reduce) - sums), copies);
  EXPECT_LT(double(sent(comm::Collective::all_reduce) - sums), copies + 8192);
}

TEST(TensorExperts, HaveAStateThatIsTheSameOnEveryOtherMesh) {
  const std::vector<Mesh> meshes{{.tensor = 2},
                                 {.tensor = 2, .data = 2, .expert = 2},
                                 {.tensor = 2, .data = 2, .zero = 3, .expert = 2},
                                 {.tensor = 2, .data = 2, .pipeline = 2, .zero = 1, .expert = 2},
                                 {.data = 2, .zero = 1, .expert = 2}};
  EngineConfig config = latent_config("delayed", "deepseek_v2");
  config.precision.options.history = 4, config.optimizer->m = Storage::bf16;
  for (const Mesh& from : {meshes[1], meshes[3]})
    expect_one_state(config, from, meshes, [&](int group) { return batches_of(0, from.data, group); });
}

// Each rank updates its copies alone, from equal sums and with equal draws.
TEST(TensorExperts, HaveEqualCopiesAfterSteps) {
  EngineConfig config = latent_config("current");
  config.optimizer->level = optim::Level::O3, config.optimizer->m = Storage::bf16;
  std::vector<std::map<std::string, std::vector<float>>> copies(2);
  on_mesh(config, {.tensor = 2}, [&](Engine& e, int rank) {
    StepRunner runner = begin_steps(e);
    for (int step = 0; step < 2; ++step) runner.run(batches_of(step, 1, 0), {.learning_rate = 1e-2});
    for (const Parameter* p : e.parameters.list()) {
      if (p->cut.copies == 1) continue;
      std::vector<float> values(std::size_t(p->shape.count()));
      nn::get_values(e.stream, p->value, values.data());
      values.erase(values.begin(), values.begin() + p->cut.alone);
      copies[std::size_t(rank)][p->path] = values;
    }
  });
  EXPECT_TRUE(copies[0].contains("layers.1.mlp.experts.down.weight"));
  EXPECT_TRUE(copies[0].contains("layers.1.mlp.shared.gate_up.weight"));
  EXPECT_TRUE(copies[0].contains("layers.0.attn.q_kv_a.weight"));
  for (const auto& [path, values] : copies[0]) EXPECT_EQ(values, copies[1].at(path)) << path;
}

TEST(TensorExperts, EvaluateAndContinueTextAsOneRank) {
  std::vector<std::vector<std::int32_t>> continued;
  std::vector<double> losses;
  for (const Mesh& mesh : {Mesh{}, {.tensor = 2}, {.tensor = 2, .data = 2, .expert = 2}}) {
    std::vector<std::vector<std::int32_t>> ids(std::size_t(mesh.all()), {3, 14, 15, 9, 26});
    on_mesh(latent_config("fp32"), mesh, [&](Engine& e, int rank) {
      begin_steps(e);
      generate(e, ids[std::size_t(rank)], 32, {.sampling = {.temperature = 0}, .tokens = 6},
               [](std::size_t, std::int32_t) { return true; });
      const double loss = evaluate_batch(e, random_batch(2, 32, 61, 7)).loss;
      if (rank == 0) losses.push_back(loss);
    });
    continued.insert(continued.end(), ids.begin(), ids.end());
  }
  for (const auto& ids : continued) EXPECT_EQ(ids, continued[0]);
  for (const double loss : losses) EXPECT_NEAR(loss / losses[0], 1, 1e-6);
}

TEST(TensorExperts, WhatIsNotBuiltIsRefusedWithItsReason) {
  const auto refusal = [](const EngineConfig& c, const Mesh& mesh) {
    return octet::testing::error_of<ConfigError>([&] { steps_on(c, mesh, 1); });
  };
  EngineConfig config = latent_config("bf16");
  config.optimizer->gradients = Storage::e4m3_tensor, config.shape.experts.balance.loss = 0;
  EXPECT_NE(refusal(config, {.tensor = 2}).find("whose gradients in e4m3_tensor cannot be summed; set optim.gradients = \"bf16\""),
            std::string::npos);
}

}  // namespace
}  // namespace octet::train
