#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "octet/base/file.hpp"
#include "octet/comm/dry_run/dry_run.hpp"
#include "octet/nn/host_values.hpp"
#include "octet/telemetry/run_record.hpp"
#include "octet/train/checkpoint/slices.testing.hpp"
#include "octet/train/step/generate.hpp"
#include "octet/train/step/meshes.testing.hpp"
#include "octet/train/run/small_runs.testing.hpp"
#include "octet/train/step/weights.hpp"
#include "octet/train/study/twin.hpp"
#include "tests/testing/saved_state.hpp"
#include "tests/testing/scratch.hpp"

// Steps of ranks that divide each layer, each a thread with an engine of its own, against one engine with whole layers.

namespace octet::train {
namespace {

using namespace octet::train::testing;

using Mesh = TensorMesh;

// Four micro-batches of 32 tokens in a step, divided among data ranks.
std::vector<data::Batch> batches_of(int step, int rank, std::int64_t data) {
  std::vector<data::Batch> out;
  for (int i = rank; i < 4; i += int(data)) out.push_back(random_batch(1, 32, 61, 900 + std::uint64_t(4 * step + i)));
  return out;
}

MeshSteps steps_on(const EngineConfig& config, const Mesh& mesh, int steps = 1, double rate = 1e-2) {
  return steps_on_mesh(config, mesh, steps, rate, [&](int step, int group) { return batches_of(step, group, mesh.data); });
}

// The largest difference of two gradients over the root mean square of the first.
double difference(const std::vector<float>& a, const std::vector<float>& b) {
  double squares = 0, most = 0;
  EXPECT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    squares += double(a[i]) * a[i], most = std::max(most, std::fabs(double(a[i]) - b[i]));
  return most / std::sqrt(squares / double(a.size()));
}

EngineConfig engine_of(const std::string& family, const std::string& recipe) {
  EngineConfig config = small_engine(family, recipe);
  config.shape.hidden = 128;
  return config;
}

TEST(Tensor, Fp32HasTheGradientsAndLossesOfOneRank) {
  for (const std::string family : {"llama", "qwen2", "qwen3"}) {
    const EngineConfig config = engine_of(family, "fp32");
    const MeshSteps one = steps_on(config, {}, 5);
    for (const Mesh mesh :
         {Mesh{2, 1}, {4, 1}, {1, 2}, {2, 2}, {2, 2, 1}, {2, 2, 2}, {2, 2, 3}, {4, 2, 1}, {4, 2, 2}, {4, 2, 3}, {2, 4, 2}, {2, 4, 3}}) {
      const MeshSteps many = steps_on(config, mesh, 5);
      EXPECT_LT(difference(one.gradients, many.gradients), 1e-4) << family << ", " << mesh.text();
      EXPECT_NEAR(many.norm / one.norm, 1, 1e-5) << family << ", " << mesh.text();
      for (std::size_t s = 0; s < one.losses.size(); ++s)
        EXPECT_NEAR(many.losses[s] / one.losses[s], 1, 1e-5) << family << ", " << mesh.text() << ", step " << s;
    }
  }
}

// Norms behind branches are copies, as other norms are.
TEST(Tensor, BlocksWithNormsBehindTheirBranchesHaveTheGradientsOfOneRank) {
  const EngineConfig config = engine_of("gemma3_text", "fp32");
  const MeshSteps one = steps_on(config, {}, 3), many = steps_on(config, Mesh{2, 2, 2}, 3);
  EXPECT_LT(difference(one.gradients, many.gradients), 1e-4);
  for (std::size_t s = 0; s < one.losses.size(); ++s) EXPECT_NEAR(many.losses[s] / one.losses[s], 1, 1e-5) << "step " << s;
}

EngineConfig with_biases(EngineConfig config) {
  config.shape.biases = {.attention = true, .mlp = true};
  return config;
}

// One member adds the bias of a sum, and each adds the gradients of its own rows. After the first step biases are not zero.
TEST(Tensor, BiasesOfOutputsAreAddedOnce) {
  const EngineConfig config = with_biases(engine_of("llama", "fp32"));
  const MeshSteps one = steps_on(config, {}, 3);
  for (const Mesh mesh : {Mesh{4, 1}, {2, 2, 2}, {2, 2, 3}}) {
    const MeshSteps many = steps_on(config, mesh, 3);
    EXPECT_LT(difference(one.gradients, many.gradients), 1e-4) << mesh.text();
    for (std::size_t s = 0; s < one.losses.size(); ++s)
      EXPECT_NEAR(many.losses[s] / one.losses[s], 1, 1e-5) << mesh.text() << ", step " << s;
  }
}

// In 8 bits, sums of members round values of BF16 once more, with biases or without.
TEST(Tensor, BiasesUnderFp8RecipesAddNoErrorOfTheirOwn) {
  for (const std::string recipe : {"current", "block128"}) {
    const auto error = [&](const EngineConfig& config) {
      return distance(steps_on(config, {}).gradients, steps_on(config, {2, 1}).gradients);
    };
    const EngineConfig plain = engine_of("llama", recipe);
    EXPECT_LT(error(with_biases(plain)), 1.5 * error(plain) + 1e-6) << recipe;
  }
}

// At stages 2 and 3 gradients of heads that ranks share are summed as values, before they become codes; otherwise as codes. Sums of four
// micro-batches are rounded stochastically, by at most half of E4M3's step, 2^-4, per addition.
TEST(Tensor, SharedHeadsHaveGradientsInEightBits) {
  EngineConfig config = engine_of("qwen2", "fp32");
  const MeshSteps exact = steps_on(config, {});
  config.optimizer->gradients = Storage::e4m3;
  for (const Mesh mesh : {Mesh{4, 1}, {4, 2, 1}, {4, 2, 2}, {4, 2, 3}}) {
    const double error = distance(exact.gradients, steps_on(config, mesh).gradients);
    EXPECT_GT(error, 1e-3) << mesh.text() << ": nothing was rounded";
    EXPECT_LT(error, 2 * 0.0625) << mesh.text();
  }
}

// Rows that travel as codes give the bits of rows that travel as values: the scale is that of all rows, and so are the codes.
TEST(Tensor, SumsInEightBitsAreNearThoseInBf16) {
  EngineConfig config = engine_of("qwen2", "bf16");
  const MeshSteps wide = steps_on(config, {2, 1});
  config.comm.tensor = parallel::TensorWire::e4m3;
  const MeshSteps narrow = steps_on(config, {2, 1});
  const double error = distance(wide.gradients, narrow.gradients);
  EXPECT_GT(error, 1e-3) << "nothing was rounded";
  EXPECT_LT(error, 0.2) << "a few roundings of 4% each";
}

TEST(Tensor, RecomputedPartsGiveTheSameBits) {
  for (const std::string part : {"norm", "activation", "mlp", "attention", "block"}) {
    EngineConfig config = engine_of("qwen3", "current");
    const MeshSteps plain = steps_on(config, {2, 1});
    config.model.recompute = nn::Recompute::named(std::vector{part});
    EXPECT_EQ(steps_on(config, {2, 1}).gradients, plain.gradients) << part;
  }
}

// A rank sends (n - 1) / n of T D values per gather and per reduce: per block two of each in forward and two of each in backward, and
// outside of blocks one of each in either direction. Besides, three numbers per token for the loss, and small sums.
// Source: Korthikanti et al. 2022, section 4.2.2.
TEST(Tensor, SendsTheBytesOfTheFormula) {
  for (const auto& [recipe, gathered] : {std::pair<std::string, double>{"fp32", 4}, {"bf16", 2}, {"current", 1}, {"block128", 2}}) {
    EngineConfig config = engine_of("qwen2", recipe);
    config.ranks.tensor = 2;
    comm::DryRunCommunicator two(2);
    Engine e(config, Device::null, {}, &two);
    StepRunner runner = begin_steps(e);
    data::Batch batch;
    batch.rows = 2, batch.length = 32;
    const auto sent = [&](comm::Collective c) { return e.axes.tensor().traffic(c).bytes; };
    const std::int64_t gathers = sent(comm::Collective::all_gather), reduces = sent(comm::Collective::reduce_scatter);
    runner.run(std::vector{batch}, {});
    const double values = 64 * 64 / 2.0, layers = 2, plain = recipe == "fp32" ? 4 : 2;
    EXPECT_EQ(double(sent(comm::Collective::all_gather) - gathers), values * (4 * layers * gathered + 2 * plain) + 64 * 3 * 4) << recipe;
    EXPECT_EQ(double(sent(comm::Collective::reduce_scatter) - reduces), values * (4 * layers + 2) * plain) << recipe;
  }
}

class TensorState : public ::testing::TestWithParam<Mesh> {};
INSTANTIATE_TEST_SUITE_P(Meshes, TensorState,
                         ::testing::Values(Mesh{1, 1}, Mesh{2, 1}, Mesh{4, 1}, Mesh{2, 2}, Mesh{2, 2, 1}, Mesh{2, 2, 2}, Mesh{2, 2, 3}),
                         [](const auto& info) { return format("{}x{}Stage{}", info.param.tensor, info.param.data, info.param.zero); });

// Of masters and moments in f32, and of master weights in BF16 with moments in blocks of 128 values.
TEST_P(TensorState, IsTheSameOnEveryOtherMesh) {
  for (const bool narrow : {false, true}) {
    EngineConfig config = engine_of("qwen2", "delayed");
    config.precision.options.history = 4;
    config.shape.width = 128, config.shape.layers = 1, config.shape.head_dim = 128, config.shape.hidden = 512;
    if (narrow) config.optimizer->master = Storage::bf16, config.optimizer->m = Storage::e4m3;
    const auto on = [&](const Mesh& mesh, const auto& work) {
      EngineConfig c = config;
      mesh.set(c.ranks);
      comm::run_on_threads({.ranks = mesh.all(), .limit_seconds = 30}, [&](comm::Communicator& ranks) {
        Engine e(c, Device::cpu, machine::machine_target(Device::cpu), &ranks);
        work(e, ranks.rank());
      });
    };
    const auto whole_state = [&](const std::string& folder) {
      octet::testing::SavedState out;
      on({}, [&](Engine& e, int) { load(e, folder), out = octet::testing::SavedState::of(e); });
      return out;
    };
    const octet::testing::Scratch scratch;
    on(GetParam(), [&](Engine& e, int rank) {
      StepRunner runner = begin_steps(e);
      runner.run(batches_of(0, e.ranks().rank(), GetParam().data), {.learning_rate = 1e-2});
      save(e, rank, scratch.at("."));
      save_weights(e, scratch.at("exported"));
    });
    const auto saved = whole_state(scratch.at("."));
    on({}, [&](Engine& e, int) { load(e, scratch.at(".")), save_weights(e, scratch.at("of one")); });
    EXPECT_EQ(read_file(scratch.at("exported/model.safetensors"), 1 << 24), read_file(scratch.at("of one/model.safetensors"), 1 << 24));
    for (const Mesh to : {Mesh{1, 1}, {2, 1}, {4, 1}, {2, 2, 1}, {2, 2, 2}, {2, 2, 3}, {1, 2, 3}}) {
      const octet::testing::Scratch again;
      on(to, [&](Engine& e, int rank) { load(e, scratch.at(".")), save(e, rank, again.at(".")); });
      EXPECT_EQ(whole_state(again.at(".")), saved) << to.text();
    }
    on({2, 2, 3}, [&](Engine& e, int) {
      load_weights(e, scratch.at("of one"));
      save_weights(e, scratch.at("again"));
    });
    EXPECT_EQ(read_file(scratch.at("again/model.safetensors"), 1 << 24), read_file(scratch.at("of one/model.safetensors"), 1 << 24));
  }
}

// Sums of other orders turn a draw now and then; draws of other places would turn a third of them.
TEST(Tensor, StochasticRoundingFollowsThePlaceInTheWholeParameter) {
  EngineConfig config = engine_of("qwen2", "fp32");
  config.optimizer->master = Storage::f16, config.optimizer->m = Storage::bf16;
  const auto masters_on = [&](const Mesh& mesh) {
    std::vector<float> out;
    const octet::testing::Scratch scratch;
    EngineConfig c = config;
    mesh.set(c.ranks);
    comm::run_on_threads({.ranks = mesh.all(), .limit_seconds = 30}, [&](comm::Communicator& ranks) {
      Engine e(c, Device::cpu, machine::machine_target(Device::cpu), &ranks);
      StepRunner runner = begin_steps(e);
      runner.run(batches_of(0, e.axes.sequence_group(), mesh.data), {.learning_rate = 1e-2});
      save(e, ranks.rank(), scratch.at("."));
    });
    Engine one(config, Device::cpu, machine::machine_target(Device::cpu));
    load(one, scratch.at("."));
    for (const Stored& value : one.parameters.values()) {
      std::vector<float> values(std::size_t(value.count()));
      nn::get_values(one.stream, value, values.data());
      out.insert(out.end(), values.begin(), values.end());
    }
    return out;
  };
  const std::vector<float> one = masters_on({});
  for (const Mesh mesh : {Mesh{2}, {4}, {2, 2, 2}}) {
    const std::vector<float> divided = masters_on(mesh);
    ASSERT_EQ(divided.size(), one.size());
    std::size_t other = 0;
    for (std::size_t i = 0; i < one.size(); ++i) other += one[i] != divided[i];
    EXPECT_LE(double(other), 5e-3 * double(one.size())) << mesh.text();
  }
}

TEST(Tensor, InitialWeightsAreThoseOfOneRank) {
  std::vector<std::string> files;
  const octet::testing::Scratch scratch;
  for (const int tensor : {1, 2, 4}) {
    EngineConfig config = engine_of("llama", "bf16");
    config.ranks.tensor = tensor;
    const std::string folder = scratch.at(format("of {}", tensor));
    comm::run_on_threads({.ranks = tensor, .limit_seconds = 30}, [&](comm::Communicator& ranks) {
      Engine e(config, Device::cpu, machine::machine_target(Device::cpu), &ranks);
      e.parameters.initialize(e.stream, 7), nudge(e.stream, e.parameters, 7, 1);
      save_weights(e, folder);
    });
    files.push_back(read_file(folder + "/model.safetensors", 1 << 24));
  }
  EXPECT_EQ(files[1], files[0]);
  EXPECT_EQ(files[2], files[0]);
}

// 5 tokens are no multiple of the ranks, so that rows are filled up.
TEST(Tensor, ContinuesTextAsOneRank) {
  std::vector<std::vector<std::int32_t>> continued;
  for (const Mesh mesh : {Mesh{1, 1}, {2, 1}, {4, 1}, {2, 2}, {2, 2, 3}}) {
    EngineConfig config = engine_of("qwen2", "fp32");
    mesh.set(config.ranks);
    std::vector<std::vector<std::int32_t>> ids(std::size_t(mesh.all()), {3, 14, 15, 9, 26});
    comm::run_on_threads({.ranks = mesh.all(), .limit_seconds = 30}, [&](comm::Communicator& ranks) {
      Engine e(config, Device::cpu, machine::machine_target(Device::cpu), &ranks);
      StepRunner runner = begin_steps(e);
      for (int s = 0; s < 3; ++s) runner.run(batches_of(s, e.ranks().rank(), mesh.data), {.learning_rate = 1e-2});
      generate(e, ids[std::size_t(ranks.rank())], 32, {.sampling = {.temperature = 0}, .tokens = 6},
               [](std::size_t, std::int32_t) { return true; });
    });
    for (const auto& of_rank : ids) continued.push_back(of_rank);
  }
  for (const auto& ids : continued) EXPECT_EQ(ids, continued[0]);
  EXPECT_EQ(continued[0].size(), 11u);
}

std::string refusal(const EngineConfig& of_one, std::int64_t tensor) {
  EngineConfig config = of_one;
  config.ranks.tensor = tensor;
  comm::DryRunCommunicator planned{int(tensor)};
  try {
    Engine(config, Device::null, {}, &planned);
  } catch (const ConfigError& e) {
    return e.what();
  }
  return "";
}

TEST(Tensor, RefusalsNameTheRuleAndTheNearestNumber) {
  const EngineConfig config = engine_of("qwen2", "bf16");
  EXPECT_EQ(refusal(config, 3), "ranks.tensor = 3: model.heads = 4 must be a multiple of it; the nearest number for this model is 2");
  EXPECT_EQ(refusal(config, 16), "ranks.tensor = 16: model.heads = 4 must be a multiple of it; the nearest number for this model is 4");
  EngineConfig odd = config;
  odd.shape.hidden = 102;
  EXPECT_NE(refusal(odd, 4).find("model.hidden = 102 must be a multiple of it; the nearest number for this model is 2"), std::string::npos);
  odd = config, odd.sequence = 30;
  EXPECT_NE(refusal(odd, 4).find("data.sequence_length = 30 must be a multiple"), std::string::npos);
  odd = config, odd.shape.heads = 6, odd.shape.kv_heads = 3;
  EXPECT_NE(refusal(odd, 2).find("model.kv_heads = 3 must be a multiple or a divisor of it"), std::string::npos);
  odd = config, odd.shape.vocabulary = 30;
  EXPECT_NE(refusal(odd, 4).find("each rank needs 16 of the 32 tokens of the vocabulary"), std::string::npos);
}

std::vector<double> losses_of(const std::string& folder) {
  std::vector<double> out;
  for (const telemetry::StepEvent& e : telemetry::read_run(folder).steps) out.push_back(e.loss);
  return out;
}

struct TensorRuns : Runs {
  TensorRuns(const std::string& recipe, std::int64_t steps) : Runs(recipe) {
    config.train.steps = steps, config.train.eval_every = 0, config.checkpoint.every = 0, config.telemetry.tensorboard = false;
    config.model.hidden = 128, config.model.layers = 2;
  }
  // 4 sequences per step on any mesh.
  Outcome on(const Mesh& mesh, const std::string& resume = "") {
    mesh.set(config.ranks);
    config.train.batch = 1, config.train.accumulate = 4 / mesh.data;
    return train_on(mesh.all(), resume);
  }
};

// 40 steps; 100 are within the same distance.
TEST(TensorRun, OfFp32HasTheLossesOfOneRank) {
  TensorRuns runs("fp32", 40);
  const std::vector<double> one = losses_of(runs.on({}).folder);
  ASSERT_EQ(one.size(), 40u);
  for (const Mesh mesh : {Mesh{2, 1}, {4, 1}, {2, 2, 1}, {2, 2, 2}, {2, 2, 3}}) {
    const std::vector<double> many = losses_of(runs.on(mesh).folder);
    for (std::size_t i = 0; i < one.size(); ++i) EXPECT_NEAR(many.at(i) / one[i], 1, 1e-5) << mesh.text() << ", " << i;
  }
}

// On the mesh that saved it, with the same bits. Evaluation and weights are those of all parts.
TEST(TensorRun, ResumesOnAnyMeshWithTheNextLosses) {
  TensorRuns runs("fp32", 6);
  runs.config.checkpoint.every = 4, runs.config.train.eval_every = 3;
  const std::string whole = runs.on({2, 1}).folder;
  const std::vector<double> losses = losses_of(whole);
  for (const Mesh mesh : {Mesh{2, 1}, {1, 1}, {4, 1}, {2, 2}, {1, 2}, {2, 2, 2}, {2, 2, 3}}) {
    const std::string cut = runs.copy_of(whole, format("cut-{}-{}-{}", mesh.tensor, mesh.data, mesh.zero));
    std::filesystem::remove_all(CheckpointStore(checkpoint_folder(cut)).path(6));
    runs.on(mesh, cut);
    const std::vector<double> resumed = losses_of(cut);
    ASSERT_EQ(resumed.size(), 6u);
    const bool same = mesh.tensor == 2 && mesh.data == 1;
    for (std::size_t i = 4; i < 6; ++i) EXPECT_NEAR(resumed[i] / losses[i], 1, same ? 0 : 1e-6) << mesh.text();
    EXPECT_NEAR(telemetry::read_run(cut).end->eval_loss / telemetry::read_run(whole).end->eval_loss, 1, same ? 0 : 1e-6);
    if (!same) continue;
    EXPECT_EQ(read_file(cut + "/weights/model.safetensors", 1 << 24), read_file(whole + "/weights/model.safetensors", 1 << 24));
  }
}

// The arena is the plan's to the byte; matrices of a rank are its share of one rank's.
TEST(TensorRun, HasTheMemoryOfItsPlanAndItsShareOfTheState) {
  for (const std::string recipe : {"bf16", "current", "rowwise"}) {
    TensorRuns runs(recipe, 2);
    runs.config.model.width = 128;
    const auto state_of = [&](const Mesh& mesh) {
      const Outcome outcome = runs.on(mesh);
      const telemetry::RunFacts facts = telemetry::read_run(outcome.folder).facts;
      EXPECT_EQ(outcome.memory.total, std::size_t(facts.memory.peak)) << recipe << ", " << mesh.text();
      EXPECT_TRUE(mesh.all() == 1 || (facts.ranks.ran && *facts.ranks.ran == facts.ranks.planned)) << recipe << ", " << mesh.text();
      double bytes = 0;
      for (const Category c : {Category::weights, Category::gradients, Category::optimizer})
        bytes += double(outcome.memory.by_category[std::size_t(c)]);
      return bytes;
    };
    const double one = state_of({});
    EXPECT_NEAR(state_of({2, 1}), one / 2, 0.03 * one / 2) << recipe;
    for (const int zero : {1, 2, 3}) EXPECT_LT(state_of({2, 2, zero}), one / 2) << recipe << ", stage " << zero;
  }
}

}  // namespace
}  // namespace octet::train
