#include "octet/train/run/checkpoints/resume.hpp"

#include <gtest/gtest.h>

#include <filesystem>

#include "octet/base/file.hpp"
#include "octet/base/log.hpp"
#include "octet/config/read.hpp"
#include "octet/config/write.hpp"
#include "octet/data/corpus.testing.hpp"
#include "octet/io/safetensors_file.hpp"
#include "octet/telemetry/run_record.hpp"
#include "octet/telemetry/tensorboard/event_file.testing.hpp"
#include "octet/train/run/checkpoints/checkpoint_weights.hpp"
#include "octet/train/run/small_runs.testing.hpp"
#include "tests/testing/run_events.hpp"

namespace octet::train {
namespace {
namespace fs = std::filesystem;
using octet::testing::error_of, octet::testing::has, octet::testing::Scratch;
using testing::expect_same_run, testing::is_incident, testing::Runs;

class ResumedRun : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Resume, ResumedRun,
                         ::testing::Values("fp32", "bf16", "fp16", "delayed", "current", "rowwise", "block128", "mxfp8", "global"));

TEST_P(ResumedRun, IsBitForBitTheRunThatNeverStopped) {
  const Runs runs(GetParam());
  const std::string whole = runs.train().folder, cut = runs.copy_of(whole, "cut");
  ASSERT_EQ(CheckpointStore(checkpoint_folder(cut)).steps(), (std::vector<std::int64_t>{5, 9}));
  fs::remove_all(CheckpointStore(checkpoint_folder(cut)).path(9));
  runs.train(cut);
  expect_same_run(whole, cut, 9);
}

// Two recipes with state, one without, BF16 layers, and a GEMM of BF16 by 8 bits.
std::vector<scaling::PrecisionRule> mixed_rules() {
  return {{.path = "layers.0.*", .recipe = "bf16"},
          {.path = "layers.1.attn.qkv", .operands = {"x"}, .recipe = "bf16"},
          {.path = "layers.*.mlp.down", .recipe = "block128", .format = "hybrid"},
          {.path = "layers.2.*", .recipe = "global"}};
}

TEST(Resume, OfAModelOfSeveralRecipesIsBitForBitTheRunThatNeverStopped) {
  Runs runs("delayed");
  runs.config.model.layers = 3, runs.config.recipe.rules = mixed_rules();
  runs.config.recipe.activations = scaling::SavedActivations::fp8;
  const std::string whole = runs.train().folder, cut = runs.copy_of(whole, "cut");
  fs::remove_all(CheckpointStore(checkpoint_folder(cut)).path(9));
  runs.train(cut);
  expect_same_run(whole, cut, 9);
  const auto state = io::SafetensorsFile::open(CheckpointStore(checkpoint_folder(cut)).path(9) + "/state.safetensors");
  for (const char* name : {"engine.quantizers.amax_history", "engine.quantizers.scales.scale", "engine.quantizers.global.scales.scale"})
    EXPECT_TRUE(state.find(name)) << name;

  RunConfig written;
  config::read_toml_file(whole + "/config.toml", written);
  EXPECT_TRUE(config::differences(written, runs.config).empty()) << "config.toml repeats the run";
  runs.config.recipe.rules[3].recipe = "rowwise";
  const std::string message = error_of<ConfigError>([&] { runs.train(cut); });
  EXPECT_TRUE(has(message, "a resumed run cannot change recipe.rules = [{path = \"layers.0.*\", recipe = \"bf16\"}, ")) << message;
}

TEST(Resume, HoldsWithWeightsGradientsAndMomentsInBf16AndWithRecompute) {
  Runs runs("current");
  for (const auto storage :
       {&optim::OptimizerConfig::master, &optim::OptimizerConfig::gradients, &optim::OptimizerConfig::m, &optim::OptimizerConfig::v})
    runs.config.optim.*storage = Storage::bf16;
  runs.config.model.recompute = {"block"}, runs.config.recipe.weights = scaling::WeightCodes::on_demand, runs.config.train.accumulate = 1;
  const std::string whole = runs.train().folder, cut = runs.copy_of(whole, "cut");
  fs::remove_all(CheckpointStore(checkpoint_folder(cut)).path(9));
  runs.config.model.recompute_layers = 1;
  runs.train(cut);
  expect_same_run(whole, cut, 9);
}

TEST(Resume, HoldsWithMomentsInEightBitsAndTheirScales) {
  using enum Storage;
  for (const auto& [m, v] : {std::pair{e4m3_expanded, e4m3_expanded}, {e4m3_tensor, e4m3_root}}) {
    Runs runs("current");
    runs.config.optim.m = m, runs.config.optim.v = v;
    const std::string whole = runs.train().folder, cut = runs.copy_of(whole, "cut");
    fs::remove_all(CheckpointStore(checkpoint_folder(cut)).path(9));
    runs.train(cut);
    expect_same_run(whole, cut, 9);
    const auto state = io::SafetensorsFile::open(CheckpointStore(checkpoint_folder(cut)).path(9) + "/state.safetensors");
    const std::string variable = "engine.optimizer.layers.0.attn.qkv.weight";
    EXPECT_TRUE(state.find(variable + ".m") && state.find(scales_name(variable + ".m", m)) && state.find(scales_name(variable + ".v", v)));
    EXPECT_FALSE(state.find(scales_name("engine.optimizer.layers.0.norm1.weight.m", m))) << "vectors have wide moments";
  }
}

TEST(Resume, HoldsWithMuonWhoseMatricesHaveOneStateAndWhoseTablesHaveTwo) {
  Runs runs("current");
  runs.config.optim.name = "muon", runs.config.optim.level = optim::Level::O3;
  const std::string whole = runs.train().folder, cut = runs.copy_of(whole, "cut");
  fs::remove_all(CheckpointStore(checkpoint_folder(cut)).path(9));
  runs.train(cut);
  expect_same_run(whole, cut, 9);
  const auto state = io::SafetensorsFile::open(CheckpointStore(checkpoint_folder(cut)).path(9) + "/state.safetensors");
  EXPECT_TRUE(state.find("engine.optimizer.layers.0.mlp.gate_up.weight.m"));
  EXPECT_FALSE(state.find("engine.optimizer.layers.0.mlp.gate_up.weight.v"));
  EXPECT_TRUE(state.find("engine.optimizer.embedding.weight.v"));
  runs.config.optim.name = "adamw";
  const std::string message = error_of<ConfigError>([&] { runs.train(cut); });
  EXPECT_TRUE(has(message, "a resumed run cannot change optim.name")) << message;
}

TEST(Resume, HoldsWithGradientsInEightBits) {
  for (const Storage gradients : {Storage::e4m3, Storage::e4m3_tensor}) {
    Runs runs("current");
    runs.config.optim.gradients = gradients, runs.config.train.accumulate = 3;
    const std::string whole = runs.train().folder, cut = runs.copy_of(whole, "cut");
    fs::remove_all(CheckpointStore(checkpoint_folder(cut)).path(9));
    runs.train(cut);
    expect_same_run(whole, cut, 9);
  }
}

// Exports, evaluations and texts of a checkpoint choose experts as its run did.
TEST(Resume, OrReadingACheckpointsWeightsHasTheBiasesOfRouters) {
  Runs runs;
  runs.config.model.size = "deepseek-v3-tiny", runs.config.model.layers = 2, runs.config.model.kv_heads = 0;
  runs.config.model.expert_hidden = 32;
  runs.config.train.steps = 4, runs.config.checkpoint.every = 4, runs.config.train.eval_every = 0;
  const std::string run = runs.train().folder;
  Engine e(engine_config(runs.config), Device::cpu, {});
  load_checkpoint_weights(e, CheckpointStore(checkpoint_folder(run)).path(4));
  const io::SafetensorsFile weights = io::SafetensorsFile::open(run + "/weights/model.safetensors");
  const auto wanted = io::to_f32(*weights.find("model.layers.1.mlp.gate.e_score_correction_bias"));
  const float* const biases = e.model->routers().biases().f32();
  EXPECT_EQ(std::vector<float>(biases, biases + wanted.size()), wanted);
  EXPECT_NE(wanted, std::vector<float>(wanted.size()));
}

TEST(Resume, OfARunWithoutACheckpointBeginsAgainAndOfAFinishedOneChangesNothing) {
  const Runs runs("delayed");
  const std::string whole = runs.train().folder, bare = runs.copy_of(whole, "bare"), done = runs.copy_of(whole, "done");
  fs::remove_all(checkpoint_folder(bare));
  fs::remove(bare + "/run.json");
  runs.train(bare);
  expect_same_run(whole, bare, 9);
  runs.train(done);
  expect_same_run(whole, done, 9);
}

TEST(Resume, ShowsEveryStepOnceOnTensorboardAndAsMetricsTellIt) {
  Runs runs("current");
  const std::string folder = runs.train().folder;
  fs::remove_all(CheckpointStore(checkpoint_folder(folder)).path(9));
  runs.train(folder);
  ASSERT_EQ(octet::testing::board_files(folder).size(), 2u);
  auto shown = octet::testing::board_of(folder);
  const telemetry::RunRecord run = telemetry::read_run(folder);
  ASSERT_EQ(shown["loss/train"].size(), run.steps.size());
  for (const telemetry::StepEvent& e : run.steps) EXPECT_EQ(shown["loss/train"].at(e.step), float(e.loss));
  for (const telemetry::EvalEvent& e : run.evals) EXPECT_EQ(shown["loss/eval"].at(e.step), float(e.loss));
  ASSERT_FALSE(run.health.empty());
  for (std::size_t i = 0; i < run.facts.quantizers.size(); ++i) {
    const telemetry::QuantizerFacts& q = run.facts.quantizers[i];
    const auto& series = shown[format("tensors/{}/{}/flushed", q.path, q.operand)];
    ASSERT_EQ(series.size(), run.health.size());
    for (const telemetry::HealthEvent& e : run.health) EXPECT_EQ(series.at(e.step), e.flushed[i]);
  }
  runs.config.telemetry.tensorboard = false, runs.config.train.steps = 10;
  runs.train(folder);
  EXPECT_EQ(octet::testing::board_files(folder).size(), 2u) << "none where none is wanted";
}

TEST(Resume, UsesTheNewestCheckpointThatReadsAsItWasWritten) {
  const Runs runs("delayed");
  const std::string whole = runs.train().folder, damaged = runs.copy_of(whole, "damaged");
  const std::string file = CheckpointStore(checkpoint_folder(damaged)).path(9) + "/state.safetensors";
  fs::resize_file(file, fs::file_size(file) - 1);
  runs.train(damaged);
  expect_same_run(whole, damaged, 9);
  const std::vector<std::string> events = octet::testing::untimed_events(damaged);
  EXPECT_EQ(std::count_if(events.begin(), events.end(), is_incident), 1) << "that it was damaged stays in the record";
  EXPECT_EQ(newest_good(CheckpointStore(checkpoint_folder(damaged)))->step, 9)
      << "the damaged one is replaced when the run gets there again";
  for (const std::int64_t step : {5, 9}) fs::resize_file(CheckpointStore(checkpoint_folder(damaged)).path(step) + "/MANIFEST.json", 100);
  const std::string message = error_of<DataError>([&] { runs.train(damaged); });
  EXPECT_TRUE(has(message, "none of the 2 checkpoints") && has(message, "step-000000009/MANIFEST.json") && has(message, "checksum"))
      << message;
}

TEST(Resume, RefusesKeysThatWouldMakeItAnotherRunAndAnotherText) {
  Runs runs("current");
  const std::string folder = runs.train().folder;
  RunConfig before = runs.config;
  runs.config.train.batch = 4, runs.config.seed = 2;
  const std::string message = error_of<ConfigError>([&] { runs.train(folder); });
  EXPECT_TRUE(has(message, "train.batch = 4 (it was 2)") && has(message, "seed = 2 (it was 1)") && has(message, "--resume")) << message;
  runs.config = before;
  runs.config.model.width = 128;
  EXPECT_TRUE(has(error_of<ConfigError>([&] { runs.train(folder); }), "model.width = 128 (it was 64)"));
  runs.config = before;
  const Scratch other;
  runs.config.data.path = data::make_dataset(other, data::some_texts(41, 400));
  EXPECT_TRUE(has(error_of<DataError>([&] { runs.train(folder); }), "another text"));
  runs.config.data.path = other.at("moved");
  fs::copy(before.data.path, other.at("moved"));
  runs.config.train.steps = 10, runs.config.optim.learning_rate = 1e-4, runs.config.checkpoint.every = 0;
  EXPECT_EQ(runs.train(folder).end.step, 10) << "a longer run, another rate, a dataset that moved";
}

TEST(Resume, KeepsAsManyCheckpointsAsItIsTold) {
  Runs runs;
  runs.config.checkpoint.every = 1, runs.config.checkpoint.keep = 2;
  const auto steps = CheckpointStore(checkpoint_folder(runs.train().folder)).steps();
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps.back(), 9);
}

TEST(Resume, OfAFolderInWhichAnotherProcessTrainsIsRefused) {
  const Runs runs;
  const std::string folder = runs.train().folder;
  const HeldFolder other(folder);
  const std::string message = error_of<IoError>([&] { runs.train(folder); });
  EXPECT_TRUE(has(message, folder) && has(message, "still going") && has(message, "process")) << message;
}

TEST(HeldFolder, OfAnotherRankWritesNothingAndIsInPlace) {
  const Runs runs;
  const std::string folder = runs.train().folder;
  const HeldFolder first(folder), other;
  int written = 0;
  for (const HeldFolder* f : {&first, &other}) f->write("a", [&](const std::string& path) { written += path == folder + "/a"; });
  EXPECT_EQ(written, 1);
  fs::rename(folder, folder + "-moved");
  EXPECT_FALSE(first.in_place());
  EXPECT_TRUE(other.in_place());
}

TEST(Resume, WithoutAFolderMeansTheLastRunOfThatName) {
  const Runs runs;
  EXPECT_TRUE(has(error_of<ConfigError>([&] { last_run_folder(runs.config); }), "runs/bf16"));
  for (const char* name : {"bf16", "bf16-2", "bf16-3", "other-4"}) fs::create_directories(runs.config.output + "/" + name);
  EXPECT_EQ(last_run_folder(runs.config), runs.config.output + "/bf16-3");
}

}  // namespace
}  // namespace octet::train
