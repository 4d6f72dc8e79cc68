#include <gtest/gtest.h>

#include "octet/train/checkpoint/slices.testing.hpp"
#include "octet/train/run/dry_run/dry_run.hpp"
#include "octet/train/step/evaluate.hpp"
#include "octet/train/step/meshes.testing.hpp"
#include "octet/train/step/weights.hpp"
#include "tests/testing/saved_state.hpp"
#include "tests/testing/scratch.hpp"

// Adapters on ranks that divide the experts of each layer.

namespace octet::train {
namespace {

using namespace octet::train::testing;
using octet::testing::SavedState, octet::testing::Scratch;

EngineConfig config_of(const std::string& recipe,
                       std::vector<std::string> targets = {"all-linear", "mlp.experts.gate_up_proj", "mlp.experts.down_proj"}) {
  EngineConfig c = small_engine("qwen3_moe", recipe);
  c.shape.width = 128, c.shape.head_dim = 32, c.shape.tied = false;
  c.shape.experts = {.number = 4, .chosen = 2, .width = 64, .normalize = true};
  c.adapters = {.rank = 8, .alpha = 12, .targets = std::move(targets)};
  return c;
}

data::Batch batch_of(int step, int i) { return random_batch(1, 32, 61, 500 + std::uint64_t(4 * step + i)); }

// Adapters of which both matrices have a gradient in the first step.
StepRunner begin_with_values(Engine& e) {
  e.initialize(7);
  for (std::size_t i = 0; i < e.parameters.list().size(); ++i) {
    const Parameter& p = *e.parameters.list()[i];
    std::vector<float> whole(std::size_t(p.whole().count()));
    for (std::size_t k = 0; k < whole.size(); ++k) whole[k] = 0.002f * float(int(philox(hash_of(p.path.c_str()), k).w[0] % 15) - 7);
    e.parameters.set_values(e.stream, i, (p.cut ? nn::part_of(p.cut, whole) : whole).data());
  }
  return StepRunner(e);
}

MeshSteps steps_on(const EngineConfig& config, const Mesh& mesh, int steps = 3) {
  return steps_on_mesh(
      config, mesh, steps, 1e-2,
      [&](int step, int group) {
        std::vector<data::Batch> own;
        for (int i = group; i < 4; i += int(mesh.data)) own.push_back(batch_of(step, i));
        return own;
      },
      begin_with_values);
}

void expect_near(const EngineConfig& config, const Mesh& mesh, const MeshSteps& one, double bound) {
  const MeshSteps many = steps_on(config, mesh, int(one.losses.size()));
  EXPECT_LT(distance(one.gradients, many.gradients), bound) << mesh.text();
  EXPECT_NEAR(many.norm / one.norm, 1, bound) << mesh.text();
  for (std::size_t s = 0; s < one.losses.size(); ++s) EXPECT_NEAR(many.losses[s] / one.losses[s], 1, bound) << mesh.text() << ", " << s;
}

TEST(LoraExperts, OfDividedExpertsHaveTheGradientsAndLossesOfOneRank) {
  const EngineConfig config = config_of("fp32");
  const MeshSteps one = steps_on(config, {});
  for (const Mesh& mesh : {Mesh{.data = 2, .expert = 2}, Mesh{.data = 4, .zero = 1, .expert = 2}, Mesh{.data = 4, .zero = 2, .expert = 2},
                           Mesh{.data = 4, .zero = 2, .expert = 4}, Mesh{.data = 4, .zero = 3, .expert = 2}, Mesh{.data = 2, .zero = 3},
                           Mesh{.context = 2, .data = 2, .expert = 2}, Mesh{.data = 2, .pipeline = 2, .zero = 1, .expert = 2},
                           Mesh{.data = 4, .zero = 1, .expert = 2, .shard = 2}})
    expect_near(config, mesh, one, 1e-5);
  // The frozen experts are divided, and adapters are those of other layers.
  const EngineConfig others = config_of("fp32", {"all-linear"});
  expect_near(others, {.data = 4, .expert = 2}, steps_on(others, {}), 1e-5);
}

// Adapters of attention are divided. Those of stacks and of shared experts are copies for the own rows, and latents have rows of both
// kinds.
TEST(LoraExperts, OnTensorRanksHaveTheGradientsAndLossesOfOneRank) {
  const auto latent = [](const std::string& family, std::vector<std::string> targets) {
    EngineConfig c = config_of("fp32", std::move(targets));
    c.shape.family = family, c.shape.layers = 3, c.shape.latent = small_latent(c.shape);
    c.shape.experts.shared = 1, c.shape.experts.first_dense = 1, c.shape.experts.normalize = family == "deepseek_v3";
    if (family == "deepseek_v2") c.shape.latent.query_rank = 0;
    return c;
  };
  const std::vector<std::string> all{"all-linear", "mlp.experts.gate_up_proj", "mlp.experts.down_proj"};
  EngineConfig shared = config_of("fp32");
  shared.shape.kv_heads = 1;
  for (const EngineConfig& config : {config_of("fp32"), shared, latent("deepseek_v2", all), latent("deepseek_v3", all)}) {
    const MeshSteps one = steps_on(config, {}, 2);
    for (const Mesh& mesh : {Mesh{.tensor = 4}, Mesh{.tensor = 2, .data = 2, .zero = 2, .expert = 2}}) expect_near(config, mesh, one, 1e-5);
  }
  const EngineConfig config = config_of("fp32");
  expect_near(config, {.tensor = 2, .data = 2, .zero = 3, .expert = 2}, steps_on(config, {}, 2), 1e-5);
  EngineConfig dropped = latent("deepseek_v3", {"all-linear"});
  dropped.adapters.dropout = 0.3;
  const auto equal_batches = [](int step, int) { return std::vector{batch_of(step, 0), batch_of(step, 1)}; };
  const MeshSteps one = steps_on_mesh(dropped, {}, 2, 1e-2, equal_batches, begin_with_values),
                  two = steps_on_mesh(dropped, {.tensor = 2}, 2, 1e-2, equal_batches, begin_with_values);
  EXPECT_LT(distance(one.gradients, two.gradients), 1e-5);
  EXPECT_NEAR(two.losses[1] / one.losses[1], 1, 1e-5);
}

// Rows come in rounds, whose products are added.
TEST(LoraExperts, WithBoundedMemoryHaveTheGradientsAndLossesOfOneRank) {
  EngineConfig config = config_of("fp32");
  const MeshSteps one = steps_on(config, {});
  config.ranks.expert_room = 1;
  expect_near(config, {.data = 4, .zero = 1, .expert = 4}, one, 1e-5);
  config.model.recompute = nn::Recompute::named(std::vector<std::string>{"block"});
  expect_near(config, {.data = 2, .expert = 2}, one, 1e-5);
}

// Codes have one scale of all experts, wherever these are. Other roundings can choose other experts.
TEST(LoraExperts, InEightBitsAreNearOneRankAndNearFp32) {
  const MeshSteps exact = steps_on(config_of("fp32"), {});
  for (const auto& [recipe, bound] : {std::pair("current", 0.15), {"block128", 0.1}, {"rowwise", 0.1}, {"mxfp8", 0.1}}) {
    EngineConfig config = config_of(recipe);
    config.precision.weights = scaling::WeightCodes::on_demand, config.precision.activations = scaling::SavedActivations::fp8;
    const MeshSteps one = steps_on(config, {});
    EXPECT_LT(distance(exact.gradients, one.gradients), bound) << recipe;
    if (recipe != std::string("current") && recipe != std::string("block128")) continue;
    for (const double room : {0.0, 1.0}) {
      config.ranks.expert_room = room;
      const MeshSteps many = steps_on(config, {.data = 2, .expert = 2});
      EXPECT_LT(distance(one.gradients, many.gradients), bound) << recipe << room;
      EXPECT_NEAR(many.losses[2] / one.losses[2], 1, 0.01) << recipe << room;
    }
  }
}

TEST(LoraExperts, HaveTheMemoryAndTheWorkOfTheirPlan) {
  for (const auto& [recipe, zero, tensor] :
       {std::tuple("current", 0, 1), {"block128", 2, 1}, {"delayed", 3, 1}, {"rowwise", 3, 1}, {"block128", 3, 2}}) {
    EngineConfig config = config_of(recipe);
    const Mesh mesh{.tensor = tensor, .data = 4 / tensor, .zero = zero, .expert = 2};
    mesh.set(config.ranks), config.planned_ranks = int(mesh.data);
    const DryRun dry = dry_run(config, machine::machine_target(Device::cpu), 1, 2);
    comm::run_on_threads({.ranks = mesh.all(), .limit_seconds = 60}, [&](comm::Communicator& c) {
      Engine e(config, Device::cpu, machine::machine_target(Device::cpu), &c);
      const int group = e.axes.sequence_group();
      const auto batches = [&](int step) { return std::vector{batch_of(step, group), batch_of(step + 1, group)}; };
      StepRunner runner = begin_steps(e);
      runner.run(batches(0), {.learning_rate = 1e-2});
      const Work before = e.stream.work();
      runner.run(batches(2), {.learning_rate = 1e-2});
      const Work real = e.stream.work() - before;
      runner.run(batches(4), {.learning_rate = 1e-2, .measure = true});
      evaluate_batch(e, batch_of(0, group));
      if (c.rank() > 0) return;
      EXPECT_EQ(dry.memory.by_category, e.stream.arena().peak().by_category) << recipe;
      EXPECT_EQ(dry.step.gemm_flops, real.gemm_flops) << recipe;
      EXPECT_EQ(dry.step.collectives, real.collectives) << recipe;
      EXPECT_EQ(dry.step.sent_bytes, real.sent_bytes) << recipe;
    });
  }
}

// In checkpoints and in PEFT folders.
TEST(LoraExperts, HaveAStateThatIsTheSameOnEveryOtherMesh) {
  const std::vector<Mesh> meshes{{.data = 2, .expert = 2},
                                 {.data = 4, .zero = 2, .expert = 2},
                                 {.data = 2, .pipeline = 2, .expert = 2},
                                 {.data = 4, .zero = 3, .expert = 2},
                                 {.tensor = 2, .data = 2, .expert = 2},
                                 {.tensor = 2, .data = 2, .zero = 3, .expert = 2},
                                 {}};
  const EngineConfig config = config_of("current");
  const auto on = [](EngineConfig of, const Mesh& mesh, const auto& work) {
    mesh.set(of.ranks);
    comm::run_on_threads({.ranks = mesh.all(), .limit_seconds = 60}, [&](comm::Communicator& c) {
      Engine e(of, Device::cpu, machine::machine_target(Device::cpu), &c);
      e.frozen.initialize(e.stream, 7);
      work(e, c.rank());
    });
  };
  const auto folder_of = [](const Scratch& scratch, const std::string& name) {
    return octet::testing::bytes_of(scratch.at(name + "/adapter_model.safetensors"));
  };
  const Scratch first;
  on(config, meshes[0], [&](Engine& e, int rank) {
    begin_with_values(e).run(std::vector{batch_of(0, rank)}, {.learning_rate = 1e-2});
    save(e, rank, first.at("."));
    save_adapters(e, config.adapters, first.at("peft"), "base");
  });
  const auto whole_state = [&](const std::string& folder) {
    Engine e(config, Device::cpu, machine::machine_target(Device::cpu));
    e.frozen.initialize(e.stream, 7);
    load(e, folder);
    return SavedState::of(e);
  };
  const SavedState saved = whole_state(first.at("."));
  for (const Mesh& to : meshes) {
    const Scratch again;
    on(config, to, [&](Engine& e, int rank) {
      load(e, first.at(".")), save(e, rank, again.at("."));
      save_adapters(e, config.adapters, again.at("peft"), "base");
    });
    EXPECT_EQ(whole_state(again.at(".")), saved) << to.text();
    EXPECT_EQ(folder_of(again, "peft"), folder_of(first, "peft")) << to.text();
    on(config, to, [&](Engine& e, int) {
      load_adapters(e, config.adapters, first.at("peft"));
      save_adapters(e, config.adapters, again.at("twice"), "base");
    });
    EXPECT_EQ(folder_of(again, "twice"), folder_of(first, "peft")) << to.text();
  }
}

// Codes of the whole matrix, of which each rank keeps a part: gathered, they are those of a rank that has all of them.
TEST(LoraRanks, OfStageThreeHaveTheBitsOfStageTwo) {
  for (const char* recipe : {"bf16", "current", "block128", "rowwise"}) {
    EngineConfig config = config_of(recipe);
    config.precision.weights = scaling::WeightCodes::on_demand;
    for (const std::int64_t expert : {1, 2}) {
      const MeshSteps two = steps_on(config, {.data = 4, .zero = 2, .expert = expert}, 2),
                      three = steps_on(config, {.data = 4, .zero = 3, .expert = expert}, 2);
      EXPECT_EQ(two.losses, three.losses) << recipe << expert;
      EXPECT_EQ(two.gradients, three.gradients) << recipe << expert;
    }
  }
}

// A rank's share of blocks, and two whole ones, in place of all blocks.
TEST(LoraRanks, OfStageThreeDivideTheMemoryOfFrozenBlocks) {
  EngineConfig config = config_of("current");
  config.shape.layers = 12, config.precision.weights = scaling::WeightCodes::on_demand;
  const auto operands = [&](std::int64_t zero) {
    Mesh{.data = 4, .zero = zero}.set(config.ranks), config.planned_ranks = 4;
    return double(dry_run(config, machine::machine_target(Device::cpu), 1, 1).memory.by_category[std::size_t(Category::weight_operands)]);
  };
  EXPECT_NEAR(operands(3) / operands(2), 1.0 / 4 + 2.0 / 12, 0.08);
}

TEST(LoraExperts, WhoseBlocksOfScalesRanksWouldCutAreRefused) {
  EngineConfig config = config_of("bf16");
  config.adapters.rank = 1, config.optimizer->m = Storage::e4m3_expanded, config.shape.width = 64, config.shape.experts.width = 48;
  Mesh{.data = 4, .expert = 4}.set(config.ranks), config.planned_ranks = 4;
  const std::string said = octet::testing::error_of<ConfigError>([&] { dry_run(config, {}, 1, 1); });
  EXPECT_NE(said.find("has a scale per 128 values, and 1 adapters of experts of rank 1 are no multiple of it"), std::string::npos) << said;
}

}  // namespace
}  // namespace octet::train
