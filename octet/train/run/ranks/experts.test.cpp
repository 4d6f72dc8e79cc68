#include <gtest/gtest.h>

#include <numeric>

#include "octet/train/checkpoint/mesh_states.testing.hpp"
#include "octet/train/run/dry_run/dry_run.hpp"
#include "octet/train/step/evaluate.hpp"
#include "octet/train/step/generate.hpp"
#include "octet/train/step/meshes.testing.hpp"
#include "octet/train/step/nonfinite.hpp"
#include "octet/train/step/weights.hpp"
#include "tests/testing/saved_state.hpp"
#include "tests/testing/scratch.hpp"

// Ranks that divide the experts of each layer: bytes, wires, memory, state and text.

namespace octet::train {
namespace {

using namespace octet::train::testing;
using octet::testing::SavedState, octet::testing::Scratch;

constexpr std::int64_t width = 128, tokens = 64;  // of a micro-batch

EngineConfig config_of(const std::string& recipe, std::int64_t experts = 4, std::int64_t chosen = 2) {
  EngineConfig c = small_engine("qwen3_moe", recipe);
  c.shape.width = width, c.shape.head_dim = 32, c.shape.tied = false, c.sequence = 32;
  c.shape.experts = {.number = experts, .chosen = chosen, .width = 64, .normalize = true};
  return c;
}

data::Batch batch_of(int step, int group) { return random_batch(2, 32, 61, 100 + std::uint64_t(8 * step + group)); }

// Bytes that each rank sends to experts in the first forward and backward.
std::vector<std::int64_t> sent_on(const EngineConfig& config, const Mesh& mesh) {
  std::vector<std::int64_t> out(std::size_t(mesh.all()));
  on_mesh(config, mesh, [&](Engine& e, int rank) {
    begin_steps(e);
    e.train_one(batch_of(0, rank), {.kind = scaling::Pass::Kind::train}, tokens * mesh.data);
    out[std::size_t(rank)] = e.axes.experts().traffic(comm::Collective::all_to_all).bytes;
  });
  return out;
}

// The choices of one rank that has all experts, for the batch of each rank of a mesh: by layer and expert.
std::vector<std::vector<float>> choices_of(const EngineConfig& config, int ranks) {
  std::vector<std::vector<float>> out;
  for (int r = 0; r < ranks; ++r)
    on_mesh(config, {}, [&](Engine& e, int) {
      begin_steps(e);
      e.train_one(batch_of(0, r), {.kind = scaling::Pass::Kind::train}, tokens * ranks);
      const Tensor counts = e.model->routers().counts();
      out.emplace_back(counts.f32(), counts.f32() + counts.count());
    });
  return out;
}

void expect_work(const Work& planned, const Work& real, const std::string& of) {
  EXPECT_EQ(planned.gemm_flops, real.gemm_flops) << of;
  EXPECT_EQ(planned.fp8_flops, real.fp8_flops) << of;
  EXPECT_EQ(planned.collectives, real.collectives) << of;
  EXPECT_EQ(planned.sent_bytes, real.sent_bytes) << of;
}

// Where each choice of a token is on a rank of its own, rows follow from the numbers of choices.
TEST(ExpertRanks, SendTheBytesOfTheFormula) {
  struct Case {
    const char* recipe;
    parallel::ExpertWire wire;
    const char* recomputed;
    std::int64_t experts, chosen;
    int ranks;
    double value, row;  // bytes per value of sums, and of rows
  };
  constexpr double coded = 1 + 1.0 / 128;
  using enum parallel::ExpertWire;
  for (const Case& c : {Case{"fp32", recipe, "", 4, 1, 2, 4, 4},
                        {"bf16", recipe, "block", 4, 2, 4, 2, 2},
                        {"bf16", e4m3, "", 4, 2, 4, 2, coded},
                        {"block128", recipe, "", 4, 1, 2, 2, coded}}) {
    EngineConfig config = config_of(c.recipe, c.experts, c.chosen);
    config.comm.experts = c.wire, config.shape.layers = 1;  // later choices follow sums that are rounded otherwise
    if (*c.recomputed != 0) config.model.recompute = nn::Recompute::named(std::vector<std::string>{c.recomputed});
    const auto choices = choices_of(config, c.ranks);
    const auto sent = sent_on(config, {.data = c.ranks, .expert = c.ranks});
    const double J = double(std::min(c.chosen, c.experts / c.ranks)), again = *c.recomputed != 0 ? 1 : 0;
    // Rows that go from one rank to another.
    const auto rows = [&](int from, int to) {
      const std::vector<float>& of = choices[std::size_t(from)];
      const std::int64_t each = c.experts / c.ranks, first = to * each;
      return from == to ? 0.0 : double(std::accumulate(of.begin() + first, of.begin() + first + each, 0.0f));
    };
    for (int r = 0; r < c.ranks; ++r) {
      double v = 0, u = 0;
      for (int other = 0; other < c.ranks; ++other) v += rows(r, other), u += rows(other, r);
      const double forward = v * (width * c.row + 8 * J) + u * width * c.value,
                   backward = v * 2 * width * c.row + u * (width * c.value + 4 * J);
      // Nothing reads the sums of a block that is computed again.
      const double recomputed = again * v * (width * c.row + 8 * J), numbers = 4 * (c.ranks - 1) * (1 + again);
      EXPECT_EQ(double(sent[std::size_t(r)]), forward + backward + recomputed + numbers) << c.recipe << ", rank " << r;
    }
  }
}

// With as many groups as ranks, and one kept, each token visits one rank.
TEST(ExpertRanks, SendFewerRowsWhereTokensVisitFewerRanks) {
  EngineConfig config = config_of("fp32", 8, 2);
  const auto total = [&] {
    const auto sent = sent_on(config, {.data = 4, .expert = 4});
    return std::accumulate(sent.begin(), sent.end(), std::int64_t(0));
  };
  const std::int64_t free = total();
  config.shape.experts.groups = 4, config.shape.experts.kept_groups = 1;
  const std::int64_t limited = total(), rows = (limited - 4 * 2 * 4 * 3) / (5 * width * 4 + 12 * 2);
  EXPECT_LE(rows, 2 * 4 * tokens);
  EXPECT_LT(double(limited), 0.75 * double(free));
  std::printf("%d bytes with one rank per token, %d without a limit\n", int(limited), int(free));
}

// Bytes of rows, sums and choices from this rank to those of the other half, as if halves were hosts.
struct BetweenHosts final : comm::CallListener {
  void called(const comm::Call& call, std::int64_t, double, double) override {
    const std::int64_t half = std::int64_t(call.sent.size()) / 2;
    for (std::int64_t r = 0; r < std::int64_t(call.sent.size()); ++r)
      if (r / half != rank / half) bytes += call.sent[std::size_t(r)] * std::int64_t(size_of(call.from.dtype));
  }
  std::int64_t rank = 0, bytes = 0;
};

std::vector<std::int64_t> between_hosts(const EngineConfig& config, const Mesh& mesh) {
  std::vector<std::int64_t> out(std::size_t(mesh.all()));
  on_mesh(config, mesh, [&](Engine& e, int rank) {
    begin_steps(e);
    BetweenHosts sent;
    sent.rank = rank;
    e.axes.experts().set_listener(&sent);
    e.train_one(batch_of(0, rank), {.kind = scaling::Pass::Kind::train}, tokens * mesh.data);
    e.axes.experts().set_listener(nullptr);
    out[std::size_t(rank)] = sent.bytes;
  });
  return out;
}

// Two kept groups of two experts are all four choices of a token: so half of the choices are rows.
TEST(ExpertRanks, OnTwoHostsSendTheBytesOfTheFormulaAndFewerWithALimit) {
  constexpr int ranks = 8, hosts = 2;
  EngineConfig config = config_of("fp32", 2 * ranks, 4);
  config.shape.layers = 1;
  const auto total = [&] {
    const auto sent = between_hosts(config, {.data = ranks, .expert = ranks});
    return std::accumulate(sent.begin(), sent.end(), std::int64_t(0));
  };
  const std::int64_t free = total();
  config.shape.experts.groups = ranks, config.shape.experts.kept_groups = 2;
  const auto choices = choices_of(config, ranks);
  double rows = 0;  // from one host to the other
  for (int from = 0; from < ranks; ++from)
    for (int e = 0; e < 2 * ranks; ++e)
      if (from * hosts / ranks != e / 2 * hosts / ranks) rows += double(choices[std::size_t(from)][std::size_t(e)]) / 2;
  constexpr double J = 2, row = width * 4, of_forward = row + 8 * J + row, of_backward = 2 * row + row + 4 * J;
  EXPECT_GT(rows, ranks * tokens / 2);
  EXPECT_EQ(double(total()), rows * (of_forward + of_backward));
  EXPECT_LT(double(total()), 0.75 * double(free));
}

MeshSteps steps_of(const EngineConfig& config, const Mesh& mesh, int steps = 2) {
  return steps_on_mesh(config, mesh, steps, 1e-2, [&](int step, int group) {
    std::vector<data::Batch> own;
    for (int i = group; i < 4; i += int(mesh.data)) own.push_back(batch_of(step, i));
    return own;
  });
}

constexpr Mesh two{.data = 2, .expert = 2};

// Rows that are encoded again have the same codes. Their columns, which the products of weights' gradients read, are rounded a second time.
TEST(ExpertRanks, CodesThatALayerReadsTravelWithoutAnotherErrorOfRows) {
  EngineConfig config = config_of("block128");
  const MeshSteps codes = steps_of(config, two);
  config.comm.experts = parallel::ExpertWire::activations;
  const MeshSteps values = steps_of(config, two);
  EXPECT_EQ(codes.losses[0], values.losses[0]);
  EXPECT_LT(distance(values.gradients, codes.gradients), 0.02);
  config = config_of("bf16"), config.comm.experts = parallel::ExpertWire::e4m3;
  const MeshSteps one = steps_of(config, {}), coded = steps_of(config, two);
  const double error = distance(one.gradients, coded.gradients);
  EXPECT_GT(error, 1e-3) << "rows travelled as codes";
  EXPECT_LT(error, 0.1);
}

// Rounded sums of ranks, and in 8 bits scales of other rows, can choose other experts.
TEST(ExpertRanks, OfEveryRecipeAreNearOneRankAndHaveTheSameBitsWhateverIsRecomputed) {
  for (const auto& [recipe, bound] : {std::pair("bf16", 0.02), {"delayed", 0.15}, {"block128", 0.1}}) {
    EngineConfig config = config_of(recipe);
    const MeshSteps one = steps_of(config, {});
    const MeshSteps many = steps_of(config, {.data = 4, .zero = 1, .expert = 2});
    EXPECT_LT(distance(one.gradients, many.gradients), bound) << recipe;
    EXPECT_NEAR(many.losses[1] / one.losses[1], 1, 0.01) << recipe;
    const MeshSteps plain = steps_of(config, two);
    config.model.recompute = nn::Recompute::named(std::vector<std::string>{"block"});
    EXPECT_EQ(steps_of(config, two).gradients, plain.gradients) << recipe;
  }
}

// Each rank's part of a stack consists of whole matrices. Muon's products may round to BF16, and a step changes the loss by more than 0.2%.
TEST(ExpertRanks, UpdateWholeMatricesAsOneRank) {
  EngineConfig config = config_of("fp32");
  config.optimizer->name = "muon";
  const MeshSteps one = steps_of(config, {}, 3), many = steps_of(config, {.data = 4, .expert = 4}, 3);
  for (std::size_t s = 0; s < one.losses.size(); ++s) EXPECT_NEAR(many.losses[s] / one.losses[s], 1, 1e-4) << s;
  EXPECT_GT(std::fabs(one.losses[2] / one.losses[1] - 1), 0.002);
  EXPECT_NEAR(many.norm / one.norm, 1, 1e-5);
}

TEST(ExpertRanks, HaveTheMemoryAndTheWorkOfTheirPlan) {
  for (const char* recipe : {"current", "block128"})
    for (const std::int64_t zero : {0, 3}) {
      EngineConfig config = config_of(recipe);
      if (zero == 0) config.precision.activations = scaling::SavedActivations::fp8;
      config.ranks.zero = zero, config.ranks.expert = 2, config.ranks.data = 4, config.planned_ranks = 4;
      const DryRun dry = dry_run(config, machine::machine_target(Device::cpu), 2, 2);
      on_mesh(config, {.data = 4, .zero = zero, .expert = 2}, [&](Engine& e, int rank) {
        const auto batches = [&](int step) { return std::vector{batch_of(step, rank), batch_of(step + 1, rank)}; };
        StepRunner runner = begin_steps(e);
        runner.run(batches(0), {.learning_rate = 1e-2});
        const Work before = e.stream.work();
        runner.run(batches(2), {.learning_rate = 1e-2});
        const Work real = e.stream.work() - before;
        runner.run(batches(4), {.learning_rate = 1e-2, .measure = true});
        evaluate_batch(e, batch_of(0, rank));
        if (rank > 0) return;
        EXPECT_EQ(dry.memory.by_category, e.stream.arena().peak().by_category) << recipe << zero;
        expect_work(dry.step, real, format("{} {}", recipe, zero));
      });
    }
}

// A step in rounds has the promised work, and no more memory than its plan, which is less than that of the worst choice.
TEST(ExpertRanks, WithBoundedMemoryStayWithinTheirPlanInRounds) {
  for (const auto& [recipe, level, recomputed] : {std::tuple("current", optim::Level::O3, ""), {"block128", optim::Level::O0, "block"}}) {
    EngineConfig config = config_of(recipe, 16, 4);
    config.optimizer->level = level, config.precision.activations = scaling::SavedActivations::fp8;
    if (*recomputed != 0) config.model.recompute = nn::Recompute::named(std::vector<std::string>{recomputed});
    const Mesh mesh{.data = 4, .zero = 1, .expert = 4};
    mesh.set(config.ranks), config.planned_ranks = 4;
    const std::size_t worst = dry_run(config, machine::machine_target(Device::cpu), 2, 2).memory.total;
    config.ranks.expert_room = 1;
    const DryRun dry = dry_run(config, machine::machine_target(Device::cpu), 2, 2);
    EXPECT_LT(dry.memory.total, worst) << recipe;
    std::int64_t calls_at_once = 0;
    config.ranks.expert_room = 0;
    on_mesh(config, mesh, [&](Engine& e, int rank) {
      begin_steps(e).run(std::vector{batch_of(0, rank), batch_of(1, rank)}, {.learning_rate = 1e-2});
      if (rank == 0) calls_at_once = e.axes.experts().traffic(comm::Collective::all_to_all).calls;
    });
    config.ranks.expert_room = 1;
    on_mesh(config, mesh, [&](Engine& e, int rank) {
      const auto batches = [&](int step) { return std::vector{batch_of(step, rank), batch_of(step + 1, rank)}; };
      StepRunner runner = begin_steps(e);
      runner.run(batches(0), {.learning_rate = 1e-2});
      EXPECT_GT(e.axes.experts().traffic(comm::Collective::all_to_all).calls, calls_at_once) << "more than one round";
      const Work before = e.stream.work();
      runner.run(batches(2), {.learning_rate = 1e-2});
      const Work real = e.stream.work() - before;
      runner.run(batches(4), {.learning_rate = 1e-2, .measure = true});
      evaluate_batch(e, batch_of(0, rank));
      if (rank > 0) return;
      EXPECT_LE(e.stream.arena().peak().total, dry.memory.total) << recipe;
      expect_work(dry.step, real, recipe);
    });
  }
}

// Gradients of rounds are added before they are encoded, so their error is that of one round.
TEST(ExpertRanks, WithBoundedMemoryAreNearOneRankInEveryStorage) {
  for (const auto& [recipe, level] : {std::pair("bf16", optim::Level::O1), {"block128", optim::Level::O3}}) {
    EngineConfig config = config_of(recipe);
    config.optimizer->level = level;
    const Mesh mesh{.data = 2, .zero = 1, .expert = 2};
    const MeshSteps one = steps_of(config, {}), at_once = steps_of(config, mesh);
    config.ranks.expert_room = 1;
    const MeshSteps in_rounds = steps_of(config, mesh);
    EXPECT_NE(in_rounds.gradients, at_once.gradients) << recipe;
    EXPECT_LT(distance(one.gradients, in_rounds.gradients), 1.1 * distance(one.gradients, at_once.gradients)) << recipe;
    EXPECT_NEAR(in_rounds.losses[1] / one.losses[1], 1, 0.01) << recipe;
  }
}

// The second pass has scratch of its own.
TEST(ExpertRanks, WhosePassesTakeTurnsHaveTheMemoryAndTheWorkOfTheirPlan) {
  EngineConfig config = config_of("block128");
  config.shape.layers = 6;
  const Mesh mesh{.data = 2, .pipeline = 2, .expert = 2};
  mesh.set(config.ranks), config.ranks.schedule = parallel::Schedule::dualpipe_v, config.planned_ranks = 2;
  const auto dry_of = [&](int stage) { return dry_run(config, machine::machine_target(Device::cpu), 2, 6, {.stage = stage}); };
  const std::vector<DryRun> dry{dry_of(0), dry_of(1)};
  on_mesh(config, mesh, [&](Engine& e, int rank) {
    std::vector<data::Batch> batches;
    for (int i = 0; i < 6; ++i) batches.push_back(batch_of(i, e.axes.sequence_group()));
    StepRunner runner = begin_steps(e);
    runner.run(batches, {.learning_rate = 1e-2});
    const Work before = e.stream.work();
    runner.run(batches, {.learning_rate = 1e-2});
    const Work real = e.stream.work() - before;
    runner.run(batches, {.learning_rate = 1e-2, .measure = true});
    evaluate_batch(e, batch_of(0, rank));
    const DryRun& planned = dry[std::size_t(e.axes.pipeline().rank())];
    if (e.axes.leads_stage()) {
      EXPECT_EQ(planned.memory.by_category, e.stream.arena().peak().by_category);
    }
    EXPECT_EQ(planned.step.collectives, real.collectives);
    EXPECT_EQ(planned.step.sent_bytes, real.sent_bytes);
  });
}

TEST(ExpertRanks, HaveAStateThatIsTheSameOnEveryOtherMesh) {
  const std::vector<Mesh> meshes{{.data = 2, .expert = 2},
                                 {.data = 4, .zero = 1, .expert = 2},
                                 {.data = 4, .zero = 3, .expert = 4},
                                 {.data = 2, .pipeline = 2, .zero = 1, .expert = 2},
                                 {.data = 2, .zero = 2},
                                 {.data = 4, .zero = 2, .expert = 2, .shard = 2}};
  for (const optim::Level level : {optim::Level::O0, optim::Level::O3}) {
    EngineConfig config = config_of("delayed");
    config.precision.options.history = 4, config.optimizer->level = level;
    for (const Mesh& from : level == optim::Level::O0 ? std::vector{meshes[0], meshes[3], meshes[5]} : std::vector{meshes[1]})
      expect_one_state(config, from, meshes, [](int group) { return std::vector{batch_of(0, group)}; });
  }
}

// All ranks search together, since each forward exchanges rows.
TEST(ExpertRanks, NameAWeightOfAnotherRankThatIsNotFinite) {
  on_mesh(config_of("bf16"), two, [&](Engine& e, int rank) {
    StepRunner runner = begin_steps(e);
    for (Parameter* p : e.parameters.list())
      if (rank == 1 && p->path == "layers.1.mlp.experts.down.weight") p->value.values().f32()[5] = NAN, ++p->version;
    const std::vector batches{batch_of(0, rank)};
    runner.run(batches, {.learning_rate = 1e-2}, [&] { EXPECT_NE(e.optimizer->last(e.stream).skip, 0.0f); });
    EXPECT_EQ(first_nonfinite(e, batches), "layers.1.mlp.experts.down.weight");
  });
}

TEST(ExpertRanks, EvaluateAndContinueTextAsOneRank) {
  std::vector<std::vector<std::int32_t>> continued;
  std::vector<double> losses;
  for (const Mesh& mesh : {Mesh{}, two}) {
    std::vector<std::vector<std::int32_t>> ids(std::size_t(mesh.all()), {3, 14, 15, 9, 26});
    on_mesh(config_of("fp32"), mesh, [&](Engine& e, int rank) {
      begin_steps(e);
      generate(e, ids[std::size_t(rank)], 32, {.sampling = {.temperature = 0}, .tokens = 6},
               [](std::size_t, std::int32_t) { return true; });
      const double loss = evaluate_batch(e, random_batch(rank == 0 ? 3 : 1, 32, 61, 7)).loss;  // unequal batches, as the last ones
      if (rank == 0) losses.push_back(loss);
    });
    continued.insert(continued.end(), ids.begin(), ids.end());
  }
  for (const auto& ids : continued) EXPECT_EQ(ids, continued[0]);
  EXPECT_NEAR(losses[1] / losses[0], 1, 1e-6);
}

TEST(ExpertRanks, RefusalsNameTheRule) {
  const auto refusal = [](EngineConfig config, const Mesh& mesh) -> std::string {
    mesh.set(config.ranks);
    comm::DryRunCommunicator planned(mesh.all());
    try {
      Engine(config, Device::null, {}, &planned);
    } catch (const ConfigError& e) {
      return e.what();
    }
    return "";
  };
  const EngineConfig config = config_of("bf16");
  const auto expect = [&](const EngineConfig& c, const Mesh& mesh, const std::string& words) {
    const std::string said = refusal(c, mesh);
    EXPECT_NE(said.find(words), std::string::npos) << said;
  };
  expect(config, {.data = 6, .expert = 4},
         "ranks.expert = 4: 4 experts per layer and ranks.data = 6 must be multiples of it; the nearest number is 2");
  expect(config, {.data = 4, .zero = 1, .expert = 4, .shard = 2},
         "ranks.shard = 2: a group has complete sets of experts, so it must be a multiple of ranks.expert = 4; the nearest number is 4");
  EngineConfig changed = config_of("fp16");
  changed.comm.experts = parallel::ExpertWire::e4m3;
  expect(changed, two, "ranks.expert = 2: comm.experts = \"e4m3\" encodes activations in BF16 or FP32, and recipe.name = \"fp16\"");
  changed = config, changed.shape.width = 192, changed.comm.experts = parallel::ExpertWire::e4m3;
  expect(changed, two, "comm.experts = \"e4m3\" has a scale per 128 values of a row, and model.width = 192");
  changed = config, changed.ranks.expert_room = 0.5;
  expect(changed, two, "ranks.expert_room = 0.5 is less memory than rows of equal loads need");
  changed = small_engine("llama", "bf16");
  expect(changed, two, "ranks.expert = 2: the model has no experts; set it to 1");
}

}  // namespace
}  // namespace octet::train
