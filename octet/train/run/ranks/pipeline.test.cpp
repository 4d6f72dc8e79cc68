#include <gtest/gtest.h>

#include <mutex>

#include "octet/base/file.hpp"
#include "octet/telemetry/run_record.hpp"
#include "octet/train/checkpoint/slices.testing.hpp"
#include "octet/train/run/small_runs.testing.hpp"
#include "octet/train/step/generate.hpp"
#include "octet/train/step/small_model.testing.hpp"
#include "octet/train/step/weights.hpp"
#include "tests/testing/saved_state.hpp"

// Runs whose ranks, which are threads, are stages of a pipeline, alone and with the other axes.

namespace octet::train {
namespace {

using namespace octet::train::testing;
using parallel::Schedule;

struct Mesh {
  std::int64_t tensor = 1, data = 1, pipeline = 1, chunks = 1, zero = 0;
  Schedule schedule = Schedule::one_f_one_b;
  std::int64_t context = 1;

  int all() const { return int(tensor * context * data * pipeline); }
  parallel::RanksConfig ranks() const {
    return {.data = data, .tensor = tensor, .context = context, .pipeline = pipeline, .schedule = schedule, .chunks = chunks, .zero = zero};
  }
  std::string text() const {
    return format("{} x {} x {} x {}, {}, {} chunks, stage {}", tensor, context, data, pipeline, to_text(schedule), chunks, zero);
  }
};

constexpr Mesh interleaved{.pipeline = 2, .chunks = 2, .schedule = Schedule::interleaved};
constexpr Mesh deferred{.pipeline = 2, .schedule = Schedule::zero_bubble};

// Four sequences of 32 tokens in a step, divided among data ranks.
std::vector<data::Batch> batches_of(int step, int rank, int data) {
  std::vector<data::Batch> out;
  for (int i = rank; i < 4; i += data) out.push_back(random_batch(1, 32, 61, 900 + std::uint64_t(4 * step + i)));
  return out;
}

template <class Work>
void on(const EngineConfig& of_one, const Mesh& mesh, const Work& work) {
  EngineConfig config = of_one;
  config.ranks = mesh.ranks();
  comm::run_on_threads({.ranks = mesh.all(), .limit_seconds = 30}, [&](comm::Communicator& ranks) {
    Engine e(config, Device::cpu, machine::machine_target(Device::cpu), &ranks);
    work(e, ranks.rank());
  });
}

octet::testing::SavedState whole_state(const EngineConfig& config, const std::string& folder) {
  octet::testing::SavedState out;
  on(config, {}, [&](Engine& e, int) { load(e, folder), out = octet::testing::SavedState::of(e); });
  return out;
}

std::string exported(const octet::testing::Scratch& scratch, const std::string& name) {
  return read_file(scratch.at(name + "/model.safetensors"), 1 << 24);
}

// Of a tied embedding, which two stages have; and of parts of layers in 8-bit moments.
TEST(PipelineState, IsTheSameOnEveryOtherMesh) {
  for (const std::string family : {"qwen3", "llama"}) {
    EngineConfig config = small_engine(family, "delayed");
    config.precision.options.history = 4, config.shape.layers = 4;
    if (family == "llama") config.shape.width = 128, config.shape.head_dim = 128, config.shape.hidden = 512;
    if (family == "llama") config.optimizer->master = Storage::bf16, config.optimizer->m = Storage::e4m3;
    const Mesh divided = family == "llama" ? Mesh{.tensor = 2, .pipeline = 2} : Mesh{.pipeline = 3};
    const std::vector<Mesh> meshes{{.data = 2, .pipeline = 2, .zero = 1}, divided, interleaved, {.data = 2, .zero = 1}};
    for (const Mesh& from : {meshes[0], divided}) {
      const octet::testing::Scratch scratch;
      on(config, from, [&](Engine& e, int rank) {
        StepRunner runner = begin_steps(e);
        runner.run(batches_of(0, e.ranks().rank(), int(from.data)), {.learning_rate = 1e-2});
        save(e, rank, scratch.at("."));
        save_weights(e, scratch.at("exported"));
      });
      const auto saved = whole_state(config, scratch.at("."));
      on(config, {}, [&](Engine& e, int) { load(e, scratch.at(".")), save_weights(e, scratch.at("of one")); });
      EXPECT_EQ(exported(scratch, "exported"), exported(scratch, "of one")) << family << " " << from.text();
      for (const Mesh& to : meshes) {
        const octet::testing::Scratch again;
        on(config, to, [&](Engine& e, int rank) { load(e, scratch.at(".")), save(e, rank, again.at(".")); });
        EXPECT_EQ(whole_state(config, again.at(".")), saved) << family << " from " << from.text() << " to " << to.text();
      }
      on(config, from, [&](Engine& e, int) { load_weights(e, scratch.at("of one")), save_weights(e, scratch.at("again")); });
      EXPECT_EQ(exported(scratch, "again"), exported(scratch, "of one")) << family << " " << from.text();
    }
  }
}

TEST(PipelineState, GradientsAreOneRowOfTheWholeModel) {
  std::vector<std::vector<float>> rows;
  for (const Mesh& mesh : {Mesh{}, {.pipeline = 2}, interleaved, {.tensor = 2, .pipeline = 2}, {.tensor = 2, .data = 2, .pipeline = 2}}) {
    EngineConfig config = small_engine("llama", "fp32");
    config.shape.layers = 4, config.shape.hidden = 128;
    on(config, mesh, [&](Engine& e, int rank) {
      StepRunner runner = begin_steps(e);
      runner.run(batches_of(0, e.ranks().rank(), int(mesh.data)), {.learning_rate = 1e-2}, [&] {
        std::vector<float> row = e.flat_gradients();
        if (rank == 0) rows.push_back(std::move(row));
      });
    });
  }
  for (const auto& row : rows) {
    ASSERT_EQ(row.size(), rows[0].size());
    for (std::size_t i = 0; i < row.size(); ++i) ASSERT_NEAR(row[i], rows[0][i], 1e-5);
  }
  EXPECT_EQ(rows[1], rows[0]);
  EXPECT_EQ(rows[2], rows[0]);
}

TEST(PipelineState, ContinuesTextAsOneRank) {
  std::vector<std::vector<std::int32_t>> continued;
  for (const Mesh& mesh : {Mesh{}, {.data = 2, .pipeline = 2}, interleaved}) {
    EngineConfig config = small_engine("qwen2", "fp32");
    config.shape.layers = 4;
    std::vector<std::vector<std::int32_t>> ids(std::size_t(mesh.all()), {3, 14, 15, 9, 26});
    on(config, mesh, [&](Engine& e, int rank) {
      begin_steps(e);
      generate(e, ids[std::size_t(rank)], 32, {.sampling = {.temperature = 0}, .tokens = 6},
               [](std::size_t, std::int32_t) { return true; });
    });
    continued.insert(continued.end(), ids.begin(), ids.end());
  }
  for (const auto& ids : continued) EXPECT_EQ(ids, continued[0]);
  EXPECT_EQ(continued[0].size(), 11u);
}

std::vector<double> losses_of(const std::string& folder) {
  std::vector<double> out;
  for (const telemetry::StepEvent& e : telemetry::read_run(folder).steps) out.push_back(e.loss);
  return out;
}

struct PipelineRuns : Runs {
  PipelineRuns(const std::string& recipe, std::int64_t steps) : Runs(recipe) {
    config.train.steps = steps, config.train.eval_every = 0, config.checkpoint.every = 0, config.telemetry.tensorboard = false;
    config.model.hidden = 128, config.model.layers = 4;
  }
  // 4 sequences per step on any mesh.
  Outcome on(const Mesh& mesh, const std::string& resume = "") {
    config.ranks = mesh.ranks();
    config.train.batch = 1, config.train.accumulate = 4 / mesh.data;
    return train_on(mesh.all(), resume);
  }
};

// 20 steps; 100 are within the same distance.
TEST(PipelineRun, OfFp32HasTheLossesOfOneRank) {
  PipelineRuns runs("fp32", 20);
  const std::vector<double> one = losses_of(runs.on({}).folder);
  ASSERT_EQ(one.size(), 20u);
  for (const Mesh& mesh :
       {Mesh{.pipeline = 4, .schedule = Schedule::gpipe}, interleaved, {.tensor = 2, .data = 2, .pipeline = 2, .zero = 1}}) {
    const std::vector<double> many = losses_of(runs.on(mesh).folder);
    for (std::size_t i = 0; i < one.size(); ++i) EXPECT_NEAR(many.at(i) / one[i], 1, 1e-5) << mesh.text() << ", " << i;
  }
}

TEST(PipelineRun, ResumesOnAnyMeshWithTheNextLosses) {
  PipelineRuns runs("delayed", 6);
  runs.config.checkpoint.every = 4, runs.config.train.eval_every = 3;
  const Mesh first{.data = 2, .pipeline = 2, .zero = 1};
  Mesh other = first;
  other.schedule = Schedule::zero_bubble;
  const std::string whole = runs.on(first).folder;
  const std::vector<double> losses = losses_of(whole);
  for (const Mesh& mesh : {first, other, Mesh{}, interleaved, deferred, {.tensor = 2, .pipeline = 2}}) {
    const std::string cut = runs.copy_of(whole, format("cut-{}-{}-{}-{}", mesh.tensor, mesh.data, mesh.pipeline, to_text(mesh.schedule)));
    std::filesystem::remove_all(CheckpointStore(checkpoint_folder(cut)).path(6));
    runs.on(mesh, cut);
    const std::vector<double> resumed = losses_of(cut);
    ASSERT_EQ(resumed.size(), 6u);
    const bool same = mesh.data == 2;
    for (std::size_t i = 4; i < 6; ++i) EXPECT_NEAR(resumed[i] / losses[i], 1, same ? 0 : 1e-3) << mesh.text();
    if (!same) continue;
    EXPECT_EQ(telemetry::read_run(cut).end->eval_loss, telemetry::read_run(whole).end->eval_loss);
    EXPECT_EQ(read_file(cut + "/weights/model.safetensors", 1 << 24), read_file(whole + "/weights/model.safetensors", 1 << 24));
  }
}

// Beside every other axis: deferred products change no bit of the run. A run of them that was cut and resumed has the same bits, too.
TEST(PipelineRun, WithDeferredProductsHasTheBitsOfThoseInBackward) {
  for (Mesh mesh : {Mesh{.tensor = 2, .data = 2, .pipeline = 2, .zero = 1}, {.pipeline = 2, .context = 2}}) {
    PipelineRuns runs("current", 4);
    runs.config.optim.gradients = Storage::e4m3, runs.config.checkpoint.every = 2, runs.config.model.recompute = {"norm"};
    const std::string at_once = runs.on(mesh).folder;
    mesh.schedule = Schedule::zero_bubble;
    const std::string later = runs.on(mesh).folder, cut = runs.copy_of(later, "cut");
    std::filesystem::remove_all(CheckpointStore(checkpoint_folder(cut)).path(4));
    runs.on(mesh, cut);
    EXPECT_EQ(losses_of(at_once).size(), 4u);
    for (const std::string& other : {later, cut}) {
      EXPECT_EQ(losses_of(other), losses_of(at_once)) << mesh.text();
      EXPECT_EQ(read_file(other + "/weights/model.safetensors", 1 << 24), read_file(at_once + "/weights/model.safetensors", 1 << 24))
          << mesh.text();
    }
  }
}

// More micro-batches than stages need no more memory, and operands of deferred products are a part of it.
TEST(PipelineRun, WithDeferredProductsKeepsMicroBatchesOfAsManyAsThereAreStages) {
  const auto memory = [](Schedule schedule, std::int64_t micro_batches, int stage) {
    EngineConfig c = small_engine("llama", "current");
    c.shape.layers = 6, c.ranks = {.data = 1, .pipeline = 3, .schedule = schedule};
    return dry_run(c, machine::machine_target(Device::cpu), 4, micro_batches, {.stage = stage}).memory;
  };
  for (int stage = 0; stage < 3; ++stage) {
    const MemoryPeak later = memory(Schedule::zero_bubble, 3, stage);
    EXPECT_GT(memory(Schedule::zero_bubble, 3, stage).total, memory(Schedule::zero_bubble, 2, stage).total) << stage;
    EXPECT_EQ(memory(Schedule::zero_bubble, 9, stage).total, later.total) << stage;
    EXPECT_GT(later.total, memory(Schedule::one_f_one_b, 9, stage).total) << stage;
  }
}

// Of every stage, to the byte. Each step's work and exchanges are compared with the plan by each rank.
TEST(PipelineRun, HasTheMemoryOfItsPlanOnEveryStage) {
  Mesh all{.tensor = 2, .data = 2, .pipeline = 2, .zero = 1}, deferred_of_all = all;
  deferred_of_all.schedule = Schedule::zero_bubble;
  const auto expect = [](const Mesh& mesh, parallel::TensorWire wire) {
    PipelineRuns runs("current", 2);
    runs.config.ranks = mesh.ranks(), runs.config.train.batch = 1, runs.config.train.accumulate = 4;
    runs.config.comm.pipeline = wire;
    comm::run_on_threads({.ranks = mesh.all(), .limit_seconds = 60}, [&](comm::Communicator& c) {
      const Corpus corpus(runs.config.data, runs.config.train, runs.config.model.shape().vocabulary);
      Trainer trainer(runs.config, corpus, {.console = Console::Kind::quiet, .ranks = &c, .ranks_here = mesh.all()});
      const std::size_t planned = trainer.plan().memory.total, is = trainer.run().memory.total;
      // The plan is that of the first data rank; others may have fewer padded blocks.
      EXPECT_LE(is, planned) << mesh.text() << ", rank " << c.rank();
      EXPECT_TRUE(is == planned || trainer.engine().ranks().rank() > 0) << mesh.text() << ", rank " << c.rank();
    });
  };
  for (const Mesh& mesh : {Mesh{.pipeline = 3}, interleaved, {.pipeline = 3, .schedule = Schedule::zero_bubble}, all, deferred_of_all})
    expect(mesh, parallel::TensorWire::activations);
  for (const Mesh& mesh : {interleaved, all}) expect(mesh, parallel::TensorWire::e4m3);
}

TEST(PipelineRun, RefusesWhatItDoesNotHave) {
  const auto refusal = [](const auto& change) -> std::string {
    PipelineRuns runs("bf16", 2);
    runs.config.ranks.pipeline = 2;
    change(runs.config);
    try {
      dry_run(engine_config(runs.config), {}, runs.config.train.batch, runs.config.train.accumulate);
    } catch (const ConfigError& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_EQ(refusal([](RunConfig&) {}), "");
  EXPECT_EQ(refusal([](RunConfig& c) { c.ranks.schedule = Schedule::interleaved, c.ranks.chunks = 2, c.train.accumulate = 3; }),
            "ranks.pipeline_schedule = \"interleaved\": train.accumulate = 3 must be a multiple of ranks.pipeline = 2; set it to 4");
}

}  // namespace
}  // namespace octet::train
