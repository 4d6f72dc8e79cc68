#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "octet/config/attributes.hpp"
#include "octet/config/read.hpp"
#include "octet/config/write.hpp"
#include "octet/json/value.hpp"
#include "octet/telemetry/run_record.hpp"
#include "octet/train/run/small_runs.testing.hpp"
#include "octet/train/study/twin.hpp"
#include "tests/testing/saved_state.hpp"

// Whole runs on ranks that are threads, against the run of one rank with the same sequences per step.

namespace octet::train {
namespace {
namespace fs = std::filesystem;
using octet::testing::error_of, octet::testing::has, octet::testing::SavedState;
using testing::Runs;

constexpr std::int64_t sequences = 12;  // of a step, on any number of ranks

// Text from which a model learns.
std::vector<std::string> counting_texts() {
  std::vector<std::string> texts(40);
  for (std::size_t i = 0; i < texts.size(); ++i)
    for (int k = 0; k < 30; ++k) texts[i] += format("document {} counts to {}\n", i, k * k);
  return texts;
}

struct RankRuns : Runs {
  RankRuns(const std::string& recipe, std::int64_t steps) : Runs(recipe) {
    config.data.path = data::make_dataset(learnable, counting_texts());
    config.train.steps = steps, config.train.eval_every = 0, config.checkpoint.every = 0;
    config.train.save_weights = config.telemetry.tensorboard = false;
  }
  std::string twin(int number) const {
    const Corpus corpus(config.data, config.train, config.model.shape().vocabulary);
    Twin hook(config.seed, number);
    return Trainer(config, corpus, {.console = Console::Kind::quiet, .hook = &hook}).run().folder;
  }
  octet::testing::Scratch learnable;
  // The same sequences per step on any number of ranks.
  RankRuns& split_for(int ranks) {
    config.train.batch = 1, config.train.accumulate = sequences / ranks;
    return *this;
  }
};

std::vector<double> losses_of(const std::string& folder) {
  std::vector<double> out;
  for (const telemetry::StepEvent& e : telemetry::read_run(folder).steps) out.push_back(e.loss);
  return out;
}

double largest_distance(const std::vector<double>& a, const std::vector<double>& b) {
  EXPECT_EQ(a.size(), b.size());
  double most = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) most = std::max(most, std::fabs(a[i] - b[i]) / std::fabs(a[i]));
  return most;
}

double mean_distance(const std::vector<double>& a, const std::vector<double>& b) {
  EXPECT_EQ(a.size(), b.size());
  double sum = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) sum += std::fabs(a[i] - b[i]) / std::fabs(a[i]);
  return sum / double(a.size());
}

TEST(RunOnRanks, HasTheLossesOfOneRankThroughAHundredSteps) {
  RankRuns runs("fp32", 100);
  runs.config.recipe.head = scaling::HeadPrecision::recipe;
  const std::vector<double> one = losses_of(runs.split_for(1).train_on(1).folder);
  ASSERT_EQ(one.size(), 100u);
  EXPECT_LT(one.back(), 0.5 * one.front()) << "it learns";
  for (const auto& [ranks, stage] : {std::pair{2, 0}, {3, 0}, {4, 0}, {2, 1}, {3, 2}, {2, 3}}) {
    runs.config.ranks.zero = stage;
    EXPECT_LE(largest_distance(one, losses_of(runs.split_for(ranks).train_on(ranks).folder)), 1e-5) << ranks << " ranks, stage " << stage;
  }
}

class RecipeRunOnRanks : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(RunOnRanks, RecipeRunOnRanks,
                         ::testing::Values("bf16", "fp16", "delayed", "current", "rowwise", "block128", "mxfp8", "global"));

// A twin begins with weights that differ in their last bit. Ranks change the last bits of sums only. Where scales of past maxima begin from
// passes before the first step, ranks have also seen more text in them. Recipes whose codes are made of copies in BF16 where masters are
// divided are compared with another run of that kind.
TEST_P(RecipeRunOnRanks, IsAsNearToOneRankAsATwin) {
  RankRuns runs(GetParam(), 20);
  const auto on = [&](int ranks, int stage) {
    runs.config.ranks.zero = stage;
    return losses_of(runs.split_for(ranks).train_on(ranks).folder);
  };
  const std::vector<double> one = on(1, 0), twin = losses_of(runs.split_for(1).twin(1));
  const double band = (GetParam() == "delayed" ? 10 : 3) * mean_distance(one, twin);
  EXPECT_LE(mean_distance(one, on(3, 0)), band);
  const bool copies = GetParam() == "rowwise" || GetParam() == "mxfp8";
  EXPECT_LE(mean_distance(copies ? on(2, 1) : one, on(3, GetParam() == "fp16" ? 2 : 3)), band);
}

// States of ranks right after they have resumed.
std::vector<SavedState> resumed_states(const RankRuns& runs, int ranks, const std::string& folder) {
  std::vector<SavedState> states;
  states.resize(std::size_t(ranks));
  runs.train_on(ranks, folder, [&](int rank, Trainer& t) { states[std::size_t(rank)] = SavedState::of(t.engine()); });
  return states;
}

class ResumedOnRanks : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(RunOnRanks, ResumedOnRanks, ::testing::Values("fp32", "delayed", "current", "block128", "mxfp8"));

// Other samples would change a loss by some percent.
TEST_P(ResumedOnRanks, HasTheStateOfItsCheckpointAndTheSamplesOfTheRunThatNeverStopped) {
  RankRuns runs(GetParam(), 10);
  runs.config.checkpoint.every = 5;
  const std::string whole = runs.split_for(2).train_on(2).folder;
  std::vector<SavedState> states;
  for (const int ranks : {2, 1, 3, 4}) {
    const std::string cut = runs.copy_of(whole, format("cut-{}", ranks));
    fs::remove_all(CheckpointStore(checkpoint_folder(cut)).path(10));
    for (SavedState& s : resumed_states(runs.split_for(ranks), ranks, cut)) states.push_back(std::move(s));
    const double distance = largest_distance(losses_of(whole), losses_of(cut));
    EXPECT_LE(distance, ranks == 2 ? 0 : GetParam() == "fp32" ? 1e-5 : 1e-3) << ranks << " ranks";
    if (ranks == 2)
      testing::expect_same_state(CheckpointStore(checkpoint_folder(whole)).path(10), CheckpointStore(checkpoint_folder(cut)).path(10));
  }
  for (const SavedState& s : states) EXPECT_EQ(s, states[0]);
}

// FP32, where only sums differ. At stages 1 to 3 rank 0 alone has no whole state. The checkpoint is that of two shard groups.
TEST(ResumedOnRanks, HasTheNextLossAtAnyOtherNumberOfRanksAndStage) {
  RankRuns runs("fp32", 6);
  runs.config.checkpoint.every = 5, runs.config.ranks.zero = 3, runs.config.ranks.shard = 2;
  const std::string whole = runs.split_for(4).train_on(4).folder;
  const std::vector<double> losses = losses_of(whole);
  for (const auto& [ranks, stage, shard] : {std::tuple{1, 0, 0}, {2, 3, 0}, {4, 1, 2}, {3, 2, 0}, {4, 3, 0}}) {
    runs.config.ranks.shard = shard;
    const std::string cut = runs.copy_of(whole, format("cut-{}-{}-{}", ranks, stage, shard));
    fs::remove_all(CheckpointStore(checkpoint_folder(cut)).path(6));
    runs.config.ranks.zero = stage;
    runs.split_for(ranks).train_on(ranks, cut);
    const std::vector<double> resumed = losses_of(cut);
    ASSERT_EQ(resumed.size(), 6u);
    EXPECT_NEAR(resumed[5] / losses[5], 1, 1e-6) << ranks << " ranks, stage " << stage;
  }
}

// Weights leave one run and enter another, at another stage. The first loss is that of the same text.
TEST(RunOnRanks, OfAnyRecipeBeginsFromTheWeightsOfAnother) {
  for (const auto& [from, to] : {std::pair{"current", "bf16"}, {"bf16", "delayed"}}) {
    RankRuns runs(from, 30);
    runs.config.train.save_weights = true, runs.config.ranks.zero = 3;
    const std::string trained = runs.split_for(2).train_on(2).folder;
    const double untrained = losses_of(trained).front();
    runs.config.model = {.init = trained + "/weights"}, runs.config.train.steps = 1, runs.config.train.save_weights = false;
    const double same = losses_of(runs.split_for(3).train_on(3).folder).front();
    runs.config.recipe.recipe = to, runs.config.ranks.zero = 1;
    const double other = losses_of(runs.split_for(2).train_on(2).folder).front();
    EXPECT_LT(same, 0.8 * untrained) << from << ": it learned";
    EXPECT_NEAR(other / same, 1, 0.01) << from << " to " << to;
  }
}

// The configurations of examples/ with a model that trains in milliseconds; all else is as they say.
std::vector<std::string> example_configurations() {
  std::vector<std::string> out;
  for (const auto& entry : fs::recursive_directory_iterator(OCTET_SOURCE_DIR "/examples"))
    if (entry.path().extension() == ".toml") out.push_back(entry.path().string());
  return out;
}
RunConfig small_example(const std::string& path, const RankRuns& runs) {
  RunConfig c;
  config::read_toml_file(path, c);
  c.model.layers = 2, c.model.width = 64, c.model.heads = c.model.kv_heads = 4, c.model.hidden = 128, c.model.vocabulary = 257;
  c.device = "cpu", c.data.path = runs.config.data.path, c.data.sequence_length = 64;
  c.train.steps = 2, c.train.tokens = 0, c.train.max_seconds = 0, c.train.batch = std::min<std::int64_t>(c.train.batch, 2);
  c.train.health_every = 100;  // the second step is compared with the plan
  c.output = runs.config.output, c.ranks.data = 0;
  return c;
}

// Every key but the number of ranks, which was left open, is the one that was asked for; so is what the plan tells of it.
void expect_as_configured(const RunConfig& wanted, const std::string& folder, const telemetry::RunFacts& facts) {
  RunConfig effective;
  config::read_toml_file(folder + "/config.toml", effective, config::Written::by_program);
  const std::vector<config::Difference> differences = config::differences(wanted, effective);
  ASSERT_EQ(differences.size(), 1u);
  EXPECT_EQ(differences[0].key + " = " + differences[0].b, format("ranks.data = {}", 2 / wanted.ranks.of_sequence()));
  EXPECT_EQ(facts.config_json, json::parse({.text = config::to_json_text(effective), .file = "config"}).dump(json::Layout::line));
  std::map<std::string, std::string> plan;
  for (const telemetry::PlanEntry& row : facts.plan) plan[row.path] = row.precision;
  const auto& [row, precision] = wanted.ranks.tensor > 1     ? std::pair("layers divided among 2 ranks", std::string("tensor"))
                                 : wanted.ranks.pipeline > 1 ? std::pair("stage 0 of 2", std::string("1f1b"))
                                                             : std::pair("divided among 2 ranks", format("ZeRO-{}", wanted.ranks.zero));
  EXPECT_EQ(plan[row], precision);
  EXPECT_EQ(plan["master weights"], name(wanted.optim.storage().master));
  EXPECT_EQ(facts.recipe, wanted.recipe.recipe);
}

// Of two ranks, each sends the half of every gradient that it does not own, and its half of the sums. Maxima and sums of the loss are few.
TEST(ExampleOnRanks, RunsItsEightBitProductsAndSendsItsBytesAsPlanned) {
  const std::vector<std::string> paths = example_configurations();
  for (const char* name : {"single", "ddp", "zero1", "zero2", "fsdp", "tensor", "context", "pipeline"})
    EXPECT_EQ(std::ranges::count_if(paths, [&](const auto& p) { return p.ends_with(format("distributed-training/{}.toml", name)); }), 1);
  for (const std::string& path : paths)
    for (const char* recipe : {"bf16", "current"}) {
      RankRuns runs("bf16", 2);
      runs.config = small_example(path, runs), runs.config.recipe.recipe = recipe;
      const Outcome outcome = runs.train_on(2);
      const telemetry::RunRecord run = telemetry::read_run(outcome.folder);
      const telemetry::RunFacts& facts = run.facts;
      expect_as_configured(runs.config, outcome.folder, facts);
      EXPECT_EQ(outcome.memory.total, std::size_t(facts.memory.peak)) << path << " in " << recipe << ": memory is that of the plan";
      EXPECT_GT(run.steps.at(1).tokens_per_second, 0);
      ASSERT_TRUE(facts.ranks.ran) << path;
      EXPECT_EQ(*facts.ranks.ran, facts.ranks.planned) << path;
      EXPECT_EQ(facts.ranks.started, 2);
      EXPECT_EQ(facts.ranks.wanted, 0);
      EXPECT_EQ(facts.ranks.planned.fp8_flops > 0, std::string(recipe) != "bf16") << path << " in " << recipe;
      if (runs.config.ranks.zero == 0 && facts.ranks.gradients == "f32") {
        EXPECT_NEAR(double(facts.ranks.ran->sent_bytes), 4.0 * double(facts.model.parameters), 0.1 * 4.0 * double(facts.model.parameters));
      }
      std::int64_t sent = 0;
      for (const auto& s : facts.ranks.sent) sent += s.bytes;
      EXPECT_EQ(sent, facts.ranks.planned.sent_bytes);
    }
}

// Counts work that no plan has.
struct Extra final : Observer {
  Stream* stream = nullptr;
  void observe(std::string_view, std::string_view, const Tensor&) override { stream->count({.fp8_flops = 1000}); }
};

std::vector<double> eval_losses_of(const std::string& folder) {
  std::vector<double> out;
  for (const telemetry::EvalEvent& e : telemetry::read_run(folder).evals) out.push_back(e.loss);
  return out;
}

// Passes before the first step, measured steps and evaluations among them. Every sum has the same order, and nothing is clipped.
struct CodedRuns : RankRuns {
  explicit CodedRuns(const std::string& recipe) : RankRuns(recipe, 4) {
    config.train.batch = 2, config.train.accumulate = 1, config.train.eval_every = 2, config.train.health_every = 3;
    config.optim.max_grad_norm = 0, config.checkpoint.every = 2;
  }
  std::string at_stage(int zero, const std::string& resume = "") {
    config.ranks.zero = zero;
    return train_on(3, resume).folder;
  }
};

void expect_same_losses(const std::string& got, const std::string& wanted, const std::string& what) {
  EXPECT_EQ(losses_of(got), losses_of(wanted)) << what;
  EXPECT_EQ(eval_losses_of(got), eval_losses_of(wanted)) << what;
  EXPECT_EQ(eval_losses_of(wanted).size(), 2u) << what;
}

TEST(RunOnRanks, ThatReadsCodesOfDividedWeightsHasTheLossesOfTheRunThatDividesNothing) {
  CodedRuns known("delayed"), blocks("block128");
  const std::string whole = known.at_stage(0), whole_of_blocks = blocks.at_stage(0);
  expect_same_losses(known.at_stage(1), whole, "known scales, stage 1");
  expect_same_losses(blocks.at_stage(2), whole_of_blocks, "blocks, stage 2");
  expect_same_losses(blocks.at_stage(3), whole_of_blocks, "blocks, stage 3");
}

// Blocks in memory to quantize their values do not have their codes, which the evaluation after a step reads.
TEST(RunOnRanks, ThatReadsCodesAndValuesOfABlockHasTheSameLossesWhereBlocksAreGathered) {
  CodedRuns runs("block128");
  runs.config.model.layers = 2;
  runs.config.recipe.rules = {{.path = "layers.*.mlp.*", .operands = {}, .recipe = "rowwise"}};
  const std::string whole = runs.at_stage(2);  // the same copies, all of them in memory
  expect_same_losses(runs.at_stage(3), whole, "blocks and rows");
}

TEST(RunOnRanks, ThatReadsCodesResumesAtAnyStageWithTheSameLosses) {
  CodedRuns runs("delayed");
  const std::string whole = runs.at_stage(1);
  for (const int zero : {0, 3}) {
    const std::string cut = runs.copy_of(whole, format("cut-{}", zero));
    fs::remove_all(CheckpointStore(checkpoint_folder(cut)).path(4));
    expect_same_losses(runs.at_stage(zero, cut), whole, format("from stage 1 to {}", zero));
  }
}

TEST(RunOnRanks, EndsWhereARankDidNotRunAsPlanned) {
  RankRuns runs("current", 3);
  runs.split_for(2);
  Extra extra;
  const std::string message = error_of<ContractError>([&] {
    runs.train_on(2, "", [&](int rank, Trainer& t) {
      if (rank == 1) extra.stream = &t.engine().stream, t.engine().stream.set_observer(&extra);
    });
  });
  EXPECT_TRUE(has(message, "step 2 of rank 1 did not run as planned: of these with 8-bit operands: ")) << message;
}

TEST(RunOnRanks, RecordsTheTimesOfRanksInStepsThatMeasure) {
  RankRuns runs("current", 9);  // measures steps 1, 4 and 8
  const telemetry::RunRecord run = telemetry::read_run(runs.split_for(3).train_on(3).folder);
  ASSERT_EQ(run.ranks.size(), 3u);
  for (const telemetry::RanksEvent& e : run.ranks) {
    ASSERT_EQ(e.seconds.size(), 3u);
    for (std::size_t r = 0; r < 3; ++r) {
      EXPECT_GT(e.waited[r], 0);
      EXPECT_LT(e.waited[r], e.seconds[r]);
      EXPECT_LE(e.seconds[r] - e.waited[r], e.seconds[std::size_t(e.slowest)] - e.waited[std::size_t(e.slowest)]);
    }
    EXPECT_EQ(e.sent_bytes, run.facts.ranks.planned.sent_bytes);
  }
  EXPECT_TRUE(telemetry::read_run(runs.split_for(1).train_on(1).folder).ranks.empty());
}

// Two matrices are large enough for a scale of their own.
TEST(RunOnRanks, RecordsTheSharedScalesOfGradientsInStepsThatMeasure) {
  RankRuns runs("bf16", 9);  // measures steps 1, 4 and 8
  runs.config.model.hidden = 1600, runs.config.comm.gradients = parallel::Wire::e4m3_shared, runs.config.checkpoint.every = 8;
  runs.split_for(2);
  for (const int stage : {0, 2}) {
    runs.config.ranks.zero = stage;
    const std::string folder = runs.train_on(2).folder;
    const telemetry::RunRecord run = telemetry::read_run(folder);
    EXPECT_EQ(run.facts.ranks.shared_scales, (std::vector<std::string>{"layers.0.mlp.down.weight", "layers.0.mlp.gate_up.weight"}));
    ASSERT_EQ(run.shared_scales.size(), 3u);
    EXPECT_EQ(run.shared_scales[2].step, 8);
    float underflow = 0;
    for (const telemetry::SharedScalesEvent& e : run.shared_scales)
      for (std::size_t i = 0; i < 2; ++i) {
        EXPECT_GT(e.mu[i], 0);
        EXPECT_LE(e.mu[i], 1);
        EXPECT_GE(e.overflow[i], 0);
        EXPECT_LT(e.overflow[i], 0.01);
        EXPECT_LT(e.underflow[i], 1);
        underflow += e.underflow[i];
      }
    EXPECT_GT(underflow, 0) << "the range of a tensor's gradients exceeds E4M3's";
    const auto state = io::SafetensorsFile::open(CheckpointStore(checkpoint_folder(folder)).path(8) + "/state.safetensors");
    std::vector<float> stored;
    for (const io::TensorView& t : state.tensors()) {
      if (!has(t.name, "gradient_sums.")) continue;
      const std::size_t before = stored.size();
      stored.resize(before + t.bytes.size() / sizeof(float));
      std::memcpy(stored.data() + before, t.bytes.data(), t.bytes.size());
    }
    for (const float mu : run.shared_scales[2].mu)
      EXPECT_NE(std::find(stored.begin(), stored.end(), mu), stored.end()) << "the checkpoint has it";
    // A factor that follows from the number of ranks is not that of the checkpoint.
    runs.config.comm.gradients = parallel::Wire::e4m3_prescaled, runs.config.train.steps = 12;
    runs.split_for(4).train_on(4, folder);
    EXPECT_EQ(telemetry::read_run(folder).shared_scales.back().mu, (std::vector<float>{0.25f, 0.25f}));
    runs.config.comm.gradients = parallel::Wire::e4m3_shared, runs.config.train.steps = 9;
    runs.split_for(2);
  }
}

// The memory of one rank is damaged after it has resumed.
TEST(RunOnRanks, EndsWhereTheWeightsOfARankAreNotFiniteAndItsCheckpointStaysGood) {
  RankRuns runs("current", 5);
  runs.config.checkpoint.every = 5;
  const std::string folder = runs.split_for(2).train_on(2).folder;
  runs.config.train.steps = 20, runs.config.train.max_skipped = 2;
  std::string ends[2];
  comm::run_on_threads({.ranks = 2, .limit_seconds = 60}, [&](comm::Communicator& c) {
    const Corpus corpus(runs.config.data, runs.config.train, runs.config.model.shape().vocabulary);
    Trainer trainer(runs.config, corpus, {.console = Console::Kind::quiet, .resume = folder, .ranks = &c, .ranks_here = 2});
    if (c.rank() == 1) trainer.engine().parameters.list().back()->value.codes.f32()[3] = NAN;
    ends[c.rank()] = error_of<DivergedError>([&] { trainer.run(); });
  });
  for (const std::string& end : ends) EXPECT_TRUE(has(end, "2 steps in a row were skipped")) << end;
  const telemetry::RunRecord run = telemetry::read_run(folder);
  ASSERT_EQ(run.steps.size(), 7u);
  EXPECT_TRUE(run.steps[5].skipped && run.steps[6].skipped);
  ASSERT_FALSE(run.incidents.empty());
  EXPECT_EQ(run.incidents.back().kind, "skipped");
  EXPECT_TRUE(has(run.incidents.back().text, " on rank 1 is not finite")) << run.incidents.back().text;
  const CheckpointStore store(checkpoint_folder(folder));
  EXPECT_EQ(store.steps(), std::vector<std::int64_t>{5});
  store.verify(5);
}

TEST(ResumeOnRanks, OfAnotherStepIsRefusedWithValuesThatFit) {
  RankRuns runs("bf16", 2);
  const std::string folder = runs.split_for(2).train_on(2).folder;  // 12 sequences
  const auto refusal = [&](int ranks, std::int64_t batch, std::int64_t accumulate) {
    runs.config.train.batch = batch, runs.config.train.accumulate = accumulate;
    return error_of<ConfigError>([&] { runs.train_on(ranks, folder); });
  };
  EXPECT_TRUE(has(refusal(1, 1, 6),
                  "ranks.data = 1 (it was 2): a resumed run keeps its 12 sequences per step, and 1 ranks x train.batch = 1 "
                  "x train.accumulate = 6 are 6; set train.accumulate = 12"));
  EXPECT_TRUE(has(refusal(4, 2, 6), "are 48; set train.batch = 1 and train.accumulate = 3"));
  EXPECT_TRUE(has(refusal(5, 1, 2), "12 sequences need 1, 2, 3, 4, 6, 12 ranks"));
  EXPECT_TRUE(has(refusal(2, 2, 3), "a resumed run cannot change train.batch = 2 (it was 1), train.accumulate = 3 (it was 6)"));
  EXPECT_EQ(refusal(3, 2, 2), "no error") << "another split of the same step";
}

}  // namespace
}  // namespace octet::train
