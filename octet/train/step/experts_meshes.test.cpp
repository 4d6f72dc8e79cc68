#include <gtest/gtest.h>

#include <map>

#include "octet/train/step/meshes.testing.hpp"

// Models with experts on ranks: data, context and pipeline, at every stage of ZeRO.

namespace octet::train {
namespace {

using namespace octet::train::testing;

EngineConfig config_of(const std::string& recipe) {
  EngineConfig c = small_engine("deepseek_v3", recipe);
  c.shape.width = 128, c.shape.layers = 4, c.shape.tied = false, c.sequence = 32, c.shape.latent = small_latent(c.shape);
  c.shape.experts = {.number = 4, .chosen = 2, .width = 64, .shared = 1, .score = ops::Routing::Score::sigmoid, .normalize = true};
  c.shape.experts.biased = true, c.shape.experts.first_dense = 1;
  c.shape.experts.balance = {.over = nn::Balance::Over::layer, .loss = 0.01, .z_loss = 1e-3, .bias_rate = 1e-3};
  return c;
}

// micro_batches: of a step on all ranks.
MeshSteps steps_on(const EngineConfig& config, const Mesh& mesh, int steps = 3, int micro_batches = 4) {
  return steps_on_mesh(config, mesh, steps, 1e-2, [&](int step, int group) {
    std::vector<data::Batch> own;
    for (int i = group; i < micro_batches; i += int(mesh.data))
      own.push_back(random_batch(1, 32, 61, 300 + std::uint64_t(micro_batches * step + i)));
    return own;
  });
}

void expect_near(const EngineConfig& config, const Mesh& mesh, const MeshSteps& one, double bound, int micro_batches = 4) {
  const MeshSteps many = steps_on(config, mesh, 3, micro_batches);
  EXPECT_LT(distance(one.gradients, many.gradients), bound) << mesh.text();
  for (std::size_t s = 0; s < one.losses.size(); ++s) EXPECT_NEAR(many.losses[s] / one.losses[s], 1, bound) << mesh.text() << ", " << s;
}

TEST(ExpertsOnMeshes, HaveTheGradientsLossesAndBiasesOfOneRank) {
  const EngineConfig config = config_of("fp32");
  const MeshSteps one = steps_on(config, {});
  for (std::int64_t zero = 0; zero <= 3; ++zero) expect_near(config, {.data = 2, .zero = zero}, one, 1e-5);
  expect_near(config, {.pipeline = 2}, one, 1e-5);
  expect_near(config, {.data = 2, .pipeline = 2, .zero = 1}, one, 1e-5);
}

// Rows travel to the ranks that have their experts.
TEST(ExpertsOnMeshes, DividedAmongRanksHaveTheGradientsLossesAndBiasesOfOneRank) {
  const EngineConfig config = config_of("fp32");
  const MeshSteps one = steps_on(config, {});
  for (const std::int64_t zero : {0, 2, 3}) expect_near(config, {.data = 2, .zero = zero, .expert = 2}, one, 1e-5);
  for (const std::int64_t zero : {0, 1, 2, 3}) expect_near(config, {.data = 4, .zero = zero, .expert = 2}, one, 1e-5);
  expect_near(config, {.data = 4, .zero = 1, .expert = 4}, one, 1e-5);
  expect_near(config, {.data = 2, .pipeline = 2, .zero = 1, .expert = 2}, one, 1e-5);
  // Groups that divide the state have one rank with each expert, or two.
  for (const std::int64_t zero : {1, 2, 3}) expect_near(config, {.data = 4, .zero = zero, .expert = 2, .shard = 2}, one, 1e-5);
  expect_near(config, {.data = 8, .zero = 2, .expert = 2, .shard = 4}, steps_on(config, {}, 3, 8), 1e-5, 8);
}

// Beyond the range of FP16, all ranks skip the step and halve the scale of the loss, as one rank does.
TEST(ExpertsOnMeshes, InFp16HaveTheGradientsOfOneRankAndSkipItsSteps) {
  EngineConfig config = config_of("fp16");
  const MeshSteps one = steps_on(config, {}), exact = steps_on(config_of("fp32"), {});
  for (const Mesh& mesh :
       {Mesh{.data = 2, .expert = 2}, {.data = 2, .pipeline = 2, .zero = 1, .expert = 2}, {.data = 4, .zero = 2, .expert = 2}})
    expect_near(config, mesh, one, 2 * distance(exact.gradients, one.gradients));
  config.loss_scale.start = 0x1p24f;
  const auto scales_on = [&](const Mesh& mesh) {
    std::vector<float> out;
    on_mesh(config, mesh, [&](Engine& e, int rank) {
      StepRunner runner = begin_steps(e);
      std::vector<data::Batch> own;
      for (int i = e.axes.sequence_group(); i < 4; i += int(mesh.data)) own.push_back(random_batch(1, 32, 61, 300 + std::uint64_t(i)));
      for (int step = 0; step < 10; ++step) {
        runner.run(own, {.learning_rate = 1e-3});
        if (rank == mesh.all() - 1) out.push_back(*e.loss_scale->scale().f32());
      }
    });
    return out;
  };
  const std::vector<float> of_one = scales_on({});
  EXPECT_LT(of_one.back(), 0x1p24f);
  EXPECT_EQ(scales_on({.data = 2, .expert = 2}), of_one);
}

// With memory for equal loads alone, which choices never are, rows come in rounds.
TEST(ExpertsOnMeshes, WithBoundedMemoryHaveTheGradientsLossesAndBiasesOfOneRank) {
  EngineConfig config = config_of("fp32");
  const MeshSteps one = steps_on(config, {});
  config.ranks.expert_room = 1;
  for (const std::int64_t zero : {0, 3}) expect_near(config, {.data = 4, .zero = zero, .expert = 4}, one, 1e-5);
  expect_near(config, {.data = 2, .pipeline = 2, .zero = 1, .expert = 2}, one, 1e-5);
  config.model.recompute = nn::Recompute::named(std::vector<std::string>{"block"});
  expect_near(config, {.data = 2, .zero = 1, .expert = 2}, one, 1e-5);
  config.model.recompute = {}, config.ranks.schedule = parallel::Schedule::dualpipe_v;
  const Mesh paired{.data = 2, .pipeline = 2, .expert = 2};
  const MeshSteps in_rounds = steps_on(config, paired, 2, 10);
  config.ranks.expert_room = 0;
  const MeshSteps at_once = steps_on(config, paired, 2, 10);
  EXPECT_LT(distance(at_once.gradients, in_rounds.gradients), 1e-5);
  EXPECT_NEAR(in_rounds.losses[1] / at_once.losses[1], 1, 1e-5);
}

// The map of rows that came lives as long as they do.
TEST(ExpertsOnMeshes, DividedAmongRanksHaveTheSameBitsWhenProductsAreDeferred) {
  EngineConfig config = config_of("block128");
  const Mesh mesh{.data = 2, .pipeline = 2, .expert = 2};
  const MeshSteps at_once = steps_on(config, mesh, 2);
  config.ranks.schedule = parallel::Schedule::zero_bubble;
  EXPECT_EQ(steps_on(config, mesh, 2).gradients, at_once.gradients);
}

// Rows of one micro-batch travel beside the computation of another.
TEST(ExpertsOnMeshes, DividedAmongRanksHaveTheSameBitsWhereForwardsAndBackwardsArePaired) {
  for (const char* recipe : {"block128", "bf16", "current"}) {
    EngineConfig config = config_of(recipe);
    const Mesh mesh{.data = 2, .pipeline = 2, .expert = 2};
    const MeshSteps in_turn = steps_on(config, mesh, 2, 10);
    config.ranks.schedule = parallel::Schedule::dualpipe_v;
    const MeshSteps paired = steps_on(config, mesh, 2, 10);
    EXPECT_EQ(paired.gradients, in_turn.gradients) << recipe;
    EXPECT_EQ(paired.losses[0], in_turn.losses[0]) << recipe;
  }
}

// Pieces of passes, and exchanges beside computation.
struct Timeline final : PhaseListener, comm::CallListener {
  struct Span {
    std::string name;
    double begin, end;
  };
  void begins(StepPhase) override {}
  void called(const comm::Call&, std::int64_t, double, double) override {}
  void piece(const std::string& pass, std::string_view piece, double begin, double end) override {
    pieces.push_back({format("{} {}", pass, piece), begin, end});
  }
  void under_way(const comm::Call&, std::int64_t, double begin, double end) override { exchanges.push_back({"", begin, end}); }
  // Exchanges of rows, not of sums, in which the other pass computes all of a piece of its attention. An exchange begins in a piece of
  // its pass. A forward has an exchange of rows and one of sums per layer, a backward two of rows and one of sums.
  int dispatches_beside_attention() const {
    int out = 0;
    std::map<std::string, int> exchanges_of;  // so far, by pass
    for (const Span& e : exchanges) {
      const auto own = std::ranges::find_if(pieces, [&](const Span& s) { return s.begin <= e.begin && e.begin <= s.end; });
      if (own == pieces.end()) continue;
      const bool forward = own->name.starts_with("forward");
      const int number = exchanges_of[own->name.substr(0, own->name.rfind(' '))]++;
      out += number % (forward ? 2 : 3) < (forward ? 1 : 2) && std::ranges::any_of(pieces, [&](const Span& s) {
               return s.name.starts_with("forward") != forward && s.name.ends_with("attention") && s.begin >= e.begin && s.end <= e.end;
             });
    }
    return out;
  }
  std::vector<Span> pieces, exchanges;
};

TEST(ExpertsOnMeshes, ADispatchIsUnderWayDuringTheAttentionOfTheOtherMicroBatch) {
  EngineConfig config = config_of("bf16");
  Mesh{.data = 2, .pipeline = 2, .expert = 2}.set(config.ranks);
  config.ranks.schedule = parallel::Schedule::dualpipe_v, config.shape.layers = 8;
  comm::run_on_threads({.ranks = 4, .limit_seconds = 60}, [&](comm::Communicator& c) {
    Engine e(config, Device::cpu, machine::machine_target(Device::cpu), &c);
    StepRunner runner = begin_steps(e);
    std::vector<data::Batch> batches;
    for (int i = 0; i < 6; ++i) batches.push_back(random_batch(1, 32, 61, 10 * std::uint64_t(e.axes.sequence_group()) + std::uint64_t(i)));
    Timeline timeline;
    c.set_listener(&timeline);
    runner.run(batches, {.learning_rate = 1e-3, .listener = &timeline});
    c.set_listener(nullptr);
    EXPECT_GT(timeline.dispatches_beside_attention(), 0) << "rank " << c.rank();
  });
}

// Of two micro-batches on one stage: "pass piece", in their order.
std::vector<std::string> pieces_in_turn(EngineConfig config, const Mesh& mesh) {
  config.shape.tied = false, config.comm.turns = true;
  std::vector<std::string> out;
  on_mesh(config, mesh, [&](Engine& e, int rank) {
    StepRunner runner = begin_steps(e);
    Timeline timeline;
    runner.run(std::vector{random_batch(1, 32, 61, 1), random_batch(1, 32, 61, 2)}, {.learning_rate = 1e-3, .listener = &timeline});
    if (rank == 0) std::ranges::transform(timeline.pieces, std::back_inserter(out), &Timeline::Span::name);
  });
  return out;
}

TEST(ExpertsOnMeshes, PiecesOfOneStageHaveTheNamesOfWhatTheyCompute) {
  const std::vector<std::string> of_experts = pieces_in_turn(config_of("bf16"), {.data = 2, .expert = 2}),
                                 of_layers = pieces_in_turn(small_engine("llama", "bf16"), {.tensor = 2});
  ASSERT_GT(of_experts.size(), 2u);
  EXPECT_EQ(of_experts[0], "forward of micro-batch 1 attention");
  EXPECT_EQ(of_experts[1], "backward of micro-batch 0 experts");
  EXPECT_TRUE(std::ranges::none_of(of_experts, [](const std::string& s) { return s.ends_with("computation"); }));
  ASSERT_GT(of_layers.size(), 2u);
  EXPECT_TRUE(std::ranges::all_of(of_layers, [](const std::string& s) { return s.ends_with("computation"); }));
}

TEST(ExpertsOnMeshes, AScheduleOfStagesHasNoEffectOnOneStage) {
  EngineConfig config = config_of("fp32");
  const Mesh mesh{.data = 2, .zero = 3, .expert = 2};
  const MeshSteps plain = steps_on(config, mesh, 2);
  config.ranks.schedule = parallel::Schedule::dualpipe_v;
  const MeshSteps named = steps_on(config, mesh, 2);
  EXPECT_EQ(named.gradients, plain.gradients);
  EXPECT_EQ(named.losses, plain.losses);
}

// Weights' products are deferred, with the rows that they read.
TEST(ExpertsOnMeshes, APipelineOfAnyScheduleHasTheBitsOfOneRank) {
  for (const char* recipe : {"bf16", "current", "block128"})
    for (const std::vector<std::string>& parts : std::vector<std::vector<std::string>>{{}, {"norm"}, {"mlp"}}) {
      EngineConfig config = config_of(recipe);
      config.model.recompute = nn::Recompute::named(parts);
      const MeshSteps one = steps_on(config, {});
      for (const parallel::Schedule schedule :
           {parallel::Schedule::one_f_one_b, parallel::Schedule::zero_bubble, parallel::Schedule::dualpipe_v}) {
        if (folds(schedule) && config.precision.recipe != "block128") continue;
        config.ranks.schedule = schedule;
        const MeshSteps two = steps_on(config, {.pipeline = 2});
        EXPECT_EQ(two.losses, one.losses) << recipe << ::testing::PrintToString(parts);
        EXPECT_EQ(two.gradients, one.gradients) << recipe << ::testing::PrintToString(parts);
      }
    }
}

// The loss of routers counts the choices in the layers of all stages: sums so far travel with activations, those of all with gradients.
TEST(ExpertsOnMeshes, APipelineOfAnyScheduleHasTheLossOfAllLayersOfOneRank) {
  EngineConfig config = config_of("fp32");
  config.shape.experts.balance.over = nn::Balance::Over::model, config.shape.experts.balance.loss = 0.5;
  const MeshSteps one = steps_on(config, {});
  using enum parallel::Schedule;
  for (const parallel::Schedule schedule : {one_f_one_b, interleaved, zero_bubble, dualpipe_v}) {
    config.ranks.schedule = schedule, config.ranks.chunks = schedule == interleaved ? 2 : 1;
    const MeshSteps two = steps_on(config, {.pipeline = 2});
    EXPECT_EQ(two.gradients, one.gradients) << to_text(schedule);
    EXPECT_EQ(two.losses, one.losses) << to_text(schedule);
  }
  config.ranks.schedule = one_f_one_b, config.ranks.chunks = 1;
  expect_near(config, {.tensor = 2, .pipeline = 2}, one, 1e-5);
  expect_near(config, {.context = 2, .pipeline = 2}, one, 1e-5);
  config.comm.pipeline = parallel::TensorWire::e4m3;
  const MeshSteps rounded = steps_on(config, {.data = 2, .pipeline = 2, .expert = 2});
  EXPECT_LT(distance(one.gradients, rounded.gradients), 0.2);
}

// The loss of routers counts the choices of complete sequences, of which context ranks have two segments, and tensor ranks a part of these.
TEST(ExpertsOnMeshes, PartsOfSequencesHaveTheGradientsOfOneRank) {
  using enum nn::Balance::Over;
  for (const nn::Balance::Over over : {model, layer, sequence}) {
    EngineConfig config = config_of("fp32");
    config.shape.experts.balance.over = over, config.shape.experts.balance.loss = 0.5;
    const MeshSteps one = steps_on(config, {});
    expect_near(config, {.context = 2, .data = 2, .zero = 1, .expert = 2}, one, 1e-5);
    expect_near(config, {.tensor = 2, .context = 2}, one, 1e-5);
    if (over == layer) expect_near(config, {.context = 2, .pipeline = 2}, one, 1e-5);
  }
}

}  // namespace
}  // namespace octet::train
