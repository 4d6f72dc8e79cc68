#include <gtest/gtest.h>

#include "octet/base/file.hpp"
#include "octet/comm/dry_run/dry_run.hpp"
#include "octet/ops/attention/documents.testing.hpp"
#include "octet/telemetry/run_record.hpp"
#include "octet/train/run/small_runs.testing.hpp"
#include "octet/train/step/evaluate.hpp"
#include "octet/train/step/meshes.testing.hpp"

// Steps and runs of ranks that have parts of each sequence, each a thread with an engine of its own, against one with whole sequences.

namespace octet::train {
namespace {

using namespace octet::train::testing;

// By the axes that these tests vary.
struct ContextMesh : Mesh {
  ContextMesh(std::int64_t of_context = 1, std::int64_t of_data = 1, std::int64_t stage = 0, std::int64_t of_tensor = 1,
              std::int64_t of_pipeline = 1)
      : Mesh{.tensor = of_tensor, .context = of_context, .data = of_data, .pipeline = of_pipeline, .zero = stage} {}
};

// Two micro-batches of a sequence of 64 tokens, with documents if these are masked, divided among groups.
std::vector<data::Batch> batches_of(const EngineConfig& c, int step, int group, std::int64_t groups) {
  std::vector<data::Batch> out;
  for (int i = group; i < 2; i += int(groups)) {
    out.push_back(random_batch(1, 64, 61, 700 + std::uint64_t(2 * step + i)));
    if (!c.document_mask) continue;
    data::Batch& b = out.back();
    b.document_mask = true, b.document_starts = ops::random_document_starts(64, 64, 11, std::uint64_t(2 * step + i));
    for (std::size_t t = 0; t < 63; ++t)
      if (b.document_starts[t + 1] == std::int32_t(t + 1)) b.targets[t] = -1;
  }
  return out;
}

MeshSteps steps_on(const EngineConfig& config, const ContextMesh& mesh, int steps = 1) {
  return steps_on_mesh(config, mesh, steps, 1e-2, [&](int step, int group) { return batches_of(config, step, group, mesh.data); });
}

EngineConfig engine_of(const std::string& family, const std::string& recipe, bool documents = false) {
  EngineConfig config = small_engine(family, recipe);
  config.sequence = 64, config.document_mask = documents;
  if (family == "gemma3_text") config.shape.window = {.tokens = 9, .global_step = 2, .rope_theta = 100};
  return config;
}

// Sums in another order change the last bits of each step, and 20 steps at a high rate enlarge them.
TEST(Context, Fp32HasTheGradientsAndLossesOfOneRank) {
  for (const auto& [family, documents] : {std::pair<std::string, bool>{"llama", false}, {"qwen3", false}, {"qwen2", true}}) {
    const EngineConfig config = engine_of(family, "fp32", documents);
    const MeshSteps one = steps_on(config, {}, 20);
    for (const ContextMesh mesh : {ContextMesh{2}, {4}, {2, 2}, {2, 1, 1}, {2, 2, 1}, {2, 1, 2}, {2, 2, 3}}) {
      const MeshSteps many = steps_on(config, mesh, 20);
      EXPECT_LT(distance(one.gradients, many.gradients), 1e-5) << family << ", " << mesh.text();
      EXPECT_NEAR(many.norm / one.norm, 1, 1e-5) << family << ", " << mesh.text();
      for (std::size_t s = 0; s < one.losses.size(); ++s)
        EXPECT_NEAR(many.losses[s] / one.losses[s], 1, s == 0 ? 1e-6 : 3e-5) << family << ", " << mesh.text() << ", step " << s;
    }
  }
}

// In few steps: the model's embeddings are large, and so is what becomes of rounding.
TEST(Context, WindowsReachOverTheBordersOfParts) {
  const EngineConfig config = engine_of("gemma3_text", "fp32", true);
  const MeshSteps one = steps_on(config, {}, 5);
  for (const ContextMesh mesh : {ContextMesh{2}, {4}, {2, 2, 3}}) {
    const MeshSteps many = steps_on(config, mesh, 5);
    EXPECT_LT(distance(one.gradients, many.gradients), 1e-5) << mesh.text();
    for (std::size_t s = 0; s < one.losses.size(); ++s)
      EXPECT_NEAR(many.losses[s] / one.losses[s], 1, 1e-5) << mesh.text() << ", step " << s;
  }
}

// Parts of layers, stages of blocks and parts of sequences at once; with masked documents.
TEST(Context, IsOneAxisOfAnyMesh) {
  const EngineConfig config = engine_of("llama", "fp32", true);
  const MeshSteps one = steps_on(config, {}, 5);
  for (const ContextMesh mesh :
       {ContextMesh{2, 1, 0, 2}, {2, 1, 2, 2}, {2, 1, 3, 2}, {2, 2, 3, 2}, {2, 1, 0, 1, 2}, {2, 1, 0, 2, 2}, {2, 2, 1, 1, 2}}) {
    const MeshSteps many = steps_on(config, mesh, 5);
    EXPECT_LT(distance(one.gradients, many.gradients), 1e-5) << mesh.text();
    for (std::size_t s = 0; s < one.losses.size(); ++s)
      EXPECT_NEAR(many.losses[s] / one.losses[s], 1, 1e-5) << mesh.text() << ", step " << s;
  }
}

TEST(Context, RecomputedPartsGiveTheSameBits) {
  for (const std::string part : {"norm", "attention", "block"}) {
    EngineConfig config = engine_of("qwen3", "current");
    const MeshSteps plain = steps_on(config, {2});
    config.model.recompute = nn::Recompute::named(std::vector{part});
    EXPECT_EQ(steps_on(config, {2}).gradients, plain.gradients) << part;
  }
}

TEST(Context, LogitsAreThoseOfWholeSequences) {
  comm::run_on_threads({.ranks = 2, .limit_seconds = 30}, [&](comm::Communicator& c) {
    EngineConfig config = engine_of("qwen3", "bf16");
    config.ranks.context = 2;
    Engine e(config, Device::cpu, machine::machine_target(Device::cpu), &c);
    begin_steps(e);
    const data::Batch batch = batches_of(config, 0, 0, 2)[0];
    const Tensor out = e.stream.empty({1, 64}, DType::f32);
    const std::string error =
        octet::testing::error_of<ContractError>([&] { e.model->last_logits(e.stream, e.upload(batch, Lifetime::scratch), {}, out); });
    EXPECT_TRUE(octet::testing::has(error, "the batch has 32 of 64 tokens of each sequence")) << error;
  });
}

// Per block a rank sends (n - 1) / n of the keys and values of whole sequences in forward, and twice in backward.
TEST(Context, SendsTheBytesOfTheFormula) {
  for (const auto& [recipe, size] : {std::pair<std::string, double>{"fp32", 4}, {"current", 2}})
    for (const int n : {2, 4}) {
      EngineConfig config = engine_of("qwen2", recipe);
      config.ranks.context = n;
      comm::DryRunCommunicator planned(n);
      Engine e(config, Device::null, {}, &planned);
      StepRunner runner = begin_steps(e);
      data::Batch batch;
      batch.rows = 3, batch.length = 64;
      const auto sent = [&](comm::Collective c) { return double(e.axes.context().traffic(c).bytes); };
      runner.run(std::vector{batch}, {});
      const double layers = 2, bytes = layers * 3 * 64 * (2 * 2 * 16) * size * (n - 1) / n;
      EXPECT_EQ(sent(comm::Collective::all_gather), 2 * bytes) << recipe << " " << n;
      EXPECT_EQ(sent(comm::Collective::reduce_scatter), bytes) << recipe << " " << n;
    }
}

std::string refusal(EngineConfig config, std::int64_t context) {
  config.ranks.context = context;
  comm::DryRunCommunicator planned{int(config.ranks.all())};
  try {
    Engine(config, Device::null, {}, &planned);
  } catch (const ConfigError& e) {
    return e.what();
  }
  return "";
}

TEST(Context, RefusalsNameTheRuleAndTheNearestNumber) {
  const EngineConfig config = engine_of("qwen2", "bf16");
  EXPECT_EQ(refusal(config, 3),
            "ranks.context = 3: data.sequence_length = 64 must be a multiple of 6, since each rank has two segments of a sequence; the "
            "nearest number for this length is 2");
  EngineConfig divided = config;
  divided.ranks.tensor = 4, divided.sequence = 36;
  EXPECT_NE(refusal(divided, 6).find("data.sequence_length / ranks.context = 6 must be"), std::string::npos) << refusal(divided, 6);
}

// Eight sequences: workspaces of a GPU are then a small share.
TEST(Context, IsPlannedForAGpuWithLessMemoryThanOneRank) {
  EngineConfig config = engine_of("qwen2", "bf16");
  config.sequence = config.shape.max_sequence = 8192;
  const Target gpu{.gemm_compute = DType::bf16, .device = Device::cuda, .multiprocessors = 132};
  const std::size_t one = dry_run(config, gpu, 8, 1).memory.total;
  config.ranks.context = config.planned_ranks = 4;
  EXPECT_LT(dry_run(config, gpu, 8, 1).memory.total, one / 2);
}

std::vector<double> losses_of(const std::string& folder) {
  std::vector<double> out;
  for (const telemetry::StepEvent& e : telemetry::read_run(folder).steps) out.push_back(e.loss);
  return out;
}

struct ContextRuns : Runs {
  ContextRuns(const std::string& recipe, std::int64_t steps) : Runs(recipe) {
    config.train.steps = steps, config.train.eval_every = 0, config.checkpoint.every = 0, config.telemetry.tensorboard = false;
  }
  // 4 sequences per step on any mesh.
  Outcome on(const ContextMesh& mesh, const std::string& resume = "") {
    mesh.set(config.ranks);
    config.train.batch = 2, config.train.accumulate = 2 / mesh.data;
    return train_on(mesh.all(), resume);
  }
};

// Evaluation and exported weights, too.
TEST(ContextRun, ResumesOnAnyMeshWithTheNextLosses) {
  ContextRuns runs("fp32", 6);
  runs.config.data.document_mask = true, runs.config.checkpoint.every = 4, runs.config.train.eval_every = 3,
  runs.config.train.sample_every = 5;
  const std::string whole = runs.on({2}).folder;
  const std::vector<double> losses = losses_of(whole);
  for (const ContextMesh mesh : {ContextMesh{2}, {1}, {4}, {2, 2, 1}, {1, 2}, {2, 1, 0, 2}, {2, 1, 3, 2}}) {
    const std::string cut = runs.copy_of(whole, "cut " + mesh.text());
    std::filesystem::remove_all(CheckpointStore(checkpoint_folder(cut)).path(6));
    runs.on(mesh, cut);
    const std::vector<double> resumed = losses_of(cut);
    ASSERT_EQ(resumed.size(), 6u);
    const bool same = mesh.all() == 2 && mesh.context == 2;
    for (std::size_t i = 4; i < 6; ++i) EXPECT_NEAR(resumed[i] / losses[i], 1, same ? 0 : 1e-6) << mesh.text();
    EXPECT_NEAR(telemetry::read_run(cut).end->eval_loss / telemetry::read_run(whole).end->eval_loss, 1, same ? 0 : 1e-6) << mesh.text();
    if (!same) continue;
    EXPECT_EQ(read_file(cut + "/weights/model.safetensors", 1 << 24), read_file(whole + "/weights/model.safetensors", 1 << 24));
  }
}

// The arena and the exchanges are the plan's; a rank saves its share of one rank's activations.
TEST(ContextRun, HasTheMemoryOfItsPlanAndItsShareOfActivations) {
  for (const std::string recipe : {"bf16", "current"}) {
    ContextRuns runs(recipe, 2);
    runs.config.data.sequence_length = 128, runs.config.model.layers = 2;
    const auto saved_of = [&](const ContextMesh& mesh) {
      const Outcome outcome = runs.on(mesh);
      const telemetry::RunFacts facts = telemetry::read_run(outcome.folder).facts;
      EXPECT_EQ(outcome.memory.total, std::size_t(facts.memory.peak)) << recipe << ", " << mesh.text();
      EXPECT_TRUE(mesh.all() == 1 || (facts.ranks.ran && *facts.ranks.ran == facts.ranks.planned)) << recipe << ", " << mesh.text();
      EngineConfig config = engine_config(runs.config);
      return double(dry_run(config, machine::machine_target(Device::cpu), 2, 1).saved.at(0));
    };
    const double one = saved_of({});
    for (const ContextMesh mesh : {ContextMesh{2}, {4, 1, 1}})
      EXPECT_NEAR(saved_of(mesh), one / mesh.context, 0.02 * one / mesh.context) << recipe;
    for (const ContextMesh mesh : {ContextMesh{2, 1, 0, 2}, ContextMesh{2, 1, 3, 2}, ContextMesh{2, 1, 0, 1, 2}})
      EXPECT_LT(saved_of(mesh), one / 2) << recipe;
  }
}

}  // namespace
}  // namespace octet::train
