#include "octet/train/step/weight_average.hpp"

#include <gtest/gtest.h>

#include "octet/train/checkpoint/mesh_states.testing.hpp"
#include "octet/train/run/dry_run/dry_run.hpp"
#include "octet/train/step/evaluate.hpp"

namespace octet::train {
namespace {

using namespace testing;

EngineConfig config_of(Storage master, bool average) {
  EngineConfig c = small_engine("llama", "current");
  c.optimizer->master = master, c.average = average;
  return c;
}

/// Four steps, of which the last three are averaged where the engine has an average; `after` is called behind each of these.
template <class After>
void train(Engine& e, After after) {
  StepRunner runner = testing::begin_steps(e);
  for (int s = 0; s < 4; ++s) {
    runner.run(std::vector{random_batch(4, 32, 61, std::uint64_t(s))}, {.learning_rate = 1e-2}, [&] {
      if (e.average && s > 0) e.average->add(e.stream);
    });
    if (s > 0) after();
  }
}

TEST(WeightAverage, IsTheMeanOfTheWeightsAfterEachStep) {
  for (const Storage master : {Storage::f32, Storage::bf16}) {
    Engine e(config_of(master, true), Device::cpu, {});
    std::vector<std::vector<float>> seen;
    train(e, [&] { seen.push_back(nn::flat_values(e.stream, e.parameters.values())); });
    ASSERT_EQ(e.average->count(), 3);
    const std::vector<float> mean = nn::flat_values(e.stream, e.average->means());
    for (std::size_t i = 0; i < mean.size(); ++i) {
      const double a = seen[0][i], b = seen[1][i], c = seen[2][i], largest = std::max({std::fabs(a), std::fabs(b), std::fabs(c)});
      ASSERT_NEAR(mean[i], (a + b + c) / 3, 3 * 6 * 0x1p-24 * largest) << i;
    }
    EXPECT_NE(seen[0], seen[2]);
  }
}

TEST(WeightAverage, ChangesNoBitOfTraining) {
  for (const Storage master : {Storage::f32, Storage::bf16}) {
    Engine with(config_of(master, true), Device::cpu, {}), without(config_of(master, false), Device::cpu, {});
    const data::Batch held_out = random_batch(4, 32, 61, 99);
    train(with, [&] {
      AveragedWeights averaged(with.stream, with.parameters, with.sharding.weights(), *with.average);
      evaluate_batch(with, held_out);
      averaged.end();
    });
    train(without, [] {});
    EXPECT_EQ(nn::flat_values(with.stream, with.parameters.values()), nn::flat_values(without.stream, without.parameters.values()));
    EXPECT_EQ(evaluate_batch(with, held_out).loss, evaluate_batch(without, held_out).loss);
  }
}

TEST(WeightAverage, IsInTheParametersWhileItIsAskedFor) {
  Engine e(config_of(Storage::f32, true), Device::cpu, {});
  train(e, [] {});
  const std::vector<float> own = nn::flat_values(e.stream, e.parameters.values());
  const double loss = evaluate_batch(e, random_batch(4, 32, 61, 99)).loss;
  AveragedWeights averaged(e.stream, e.parameters, e.sharding.weights(), *e.average);
  EXPECT_EQ(nn::flat_values(e.stream, e.parameters.values()), nn::flat_values(e.stream, e.average->means()));
  EXPECT_NE(evaluate_batch(e, random_batch(4, 32, 61, 99)).loss, loss) << "quantized weights follow, too";
  averaged.end();
  EXPECT_EQ(nn::flat_values(e.stream, e.parameters.values()), own);
  e.average->forget();
  EXPECT_THROW(AveragedWeights(e.stream, e.parameters, e.sharding.weights(), *e.average), ContractError);
  e.average->add(e.stream);
  EXPECT_EQ(nn::flat_values(e.stream, e.average->means()), own) << "begun anew";
}

EngineConfig config_of_mesh(const Mesh& mesh, const char* recipe) {
  EngineConfig c = small_engine(mesh.expert > 1 ? "qwen3_moe" : "qwen3", recipe);
  c.shape.layers = 4, c.shape.hidden = 128, c.average = true;
  if (mesh.expert > 1) c.shape.experts = {.number = 4, .chosen = 2, .width = 64, .normalize = true};
  return c;
}

// Losses of the averaged weights of three steps, of the weights themselves before and after, and of the step behind.
struct Losses {
  double averaged = 0, before = 0, after = 0, next = 0;
};

Losses losses_on(const EngineConfig& config, const Mesh& mesh) {
  Losses out;
  on_mesh(config, mesh, [&](Engine& e, int rank) {
    const auto batches = [&](int step) {
      std::vector<data::Batch> own;
      for (int i = e.axes.sequence_group(); i < 4; i += int(mesh.data))
        own.push_back(random_batch(1, 32, 61, 40 + std::uint64_t(4 * step + i)));
      return own;
    };
    const auto evaluated = [&] { return evaluate_batch(e, random_batch(2, 32, 61, 99)).loss; };
    StepRunner runner = begin_steps(e);
    for (int step = 0; step < 3; ++step) runner.run(batches(step), {.learning_rate = 1e-2}, [&] { e.average->add(e.stream); });
    Losses seen{.before = evaluated()};
    AveragedWeights averaged(e.stream, e.parameters, e.sharding.weights(), *e.average);
    seen.averaged = evaluated();
    averaged.end();
    seen.after = evaluated();
    runner.run(batches(3), {.learning_rate = 1e-2}, [&] { seen.next = double(read_out(e).loss); });
    if (rank == 0) out = seen;
  });
  return out;
}

TEST(WeightAverage, OfEveryMeshIsThatOfOneRank) {
  Losses of_one[2];
  for (const Mesh& mesh : {Mesh{},
                           {.tensor = 2},
                           {.pipeline = 2},
                           {.tensor = 2, .data = 2, .pipeline = 2, .zero = 1},
                           {.data = 2, .zero = 2},
                           {.tensor = 2, .data = 2, .zero = 3},
                           {.data = 4, .zero = 3, .shard = 2},
                           {.data = 2, .expert = 2},
                           {.data = 4, .zero = 1, .expert = 2},
                           {.tensor = 2, .data = 2, .zero = 3, .expert = 2}}) {
    const EngineConfig config = config_of_mesh(mesh, "fp32");
    Losses& one = of_one[mesh.expert > 1];
    if (one.averaged == 0) one = losses_on(config, {});
    const Losses many = losses_on(config, mesh);
    EXPECT_EQ(many.after, many.before) << mesh.text();
    EXPECT_GT(std::fabs(many.averaged - many.before), 1e-4) << mesh.text();
    for (const auto member : {&Losses::averaged, &Losses::before, &Losses::next})
      EXPECT_NEAR(many.*member / (one.*member), 1, 1e-5) << mesh.text();
  }
}

// Where ranks divide masters, weights that GEMMs read as codes come from means of masters, too.
TEST(WeightAverage, OfCodesOnMeshesIsNearThatOfOneRank) {
  for (const Mesh& mesh : {Mesh{.data = 2, .zero = 3}, {.tensor = 2, .data = 2, .zero = 1}, {.data = 2, .zero = 1, .expert = 2}}) {
    EngineConfig config = config_of_mesh(mesh, "current");
    config.optimizer->level = optim::Level::O1;
    const Losses one = losses_on(config, {}), many = losses_on(config, mesh);
    EXPECT_EQ(many.after, many.before) << mesh.text();
    EXPECT_NEAR(many.averaged / one.averaged, 1, 2e-2) << mesh.text();
    EXPECT_NE(many.averaged, many.before) << mesh.text();
  }
}

TEST(WeightAverage, IsTheSameStateOnAllMeshesWithTheMemoryOfItsPlan) {
  const Mesh divided{.tensor = 2, .data = 2, .pipeline = 2, .zero = 1}, experts{.data = 4, .zero = 1, .expert = 2};
  const auto batches = [](int group) { return std::vector{random_batch(1, 32, 61, 7 + std::uint64_t(group))}; };
  const auto add = [](Engine& e) { e.average->add(e.stream); };
  for (const Mesh& from : {divided, experts, Mesh{.data = 2, .zero = 3}, Mesh{.data = 2, .expert = 2}}) {
    const EngineConfig config = config_of_mesh(from, "bf16");
    expect_one_state(config, from, {{}, {.tensor = 2}, {.pipeline = 2}, from}, batches, add);
    EngineConfig planned = config;
    from.set(planned.ranks), planned.planned_ranks = int(from.data);
    on_mesh(config, from, [&](Engine& e, int) {
      begin_steps(e).run(std::vector{random_batch(1, 32, 61, 7)}, {.learning_rate = 1e-2, .measure = true});
      const DryRun dry = dry_run(planned, {}, 1, 1, {.stage = e.axes.pipeline().rank()});
      if (e.ranks().rank() > 0) return;  // others may have fewer padded blocks
      const auto of_optimizer = [](const MemoryPeak& m) { return m.by_category[std::size_t(Category::optimizer)]; };
      EXPECT_EQ(of_optimizer(e.stream.arena().peak()), of_optimizer(dry.memory)) << from.text();
    });
  }
}

}  // namespace
}  // namespace octet::train
