#include <gtest/gtest.h>

#include "octet/train/run/small_runs.testing.hpp"

// Runs that train adapters over the weights of a folder.

namespace octet::train {
namespace {

namespace fs = std::filesystem;
using octet::testing::error_of, octet::testing::has;
using testing::Runs;

// Of a small model that was trained before.
struct LoraRuns : Runs {
  explicit LoraRuns(const std::string& recipe) : Runs(recipe) {
    config.train.steps = 2, config.name = "base";
    config.model.init = train().folder + "/weights";
    config.train.steps = 9, config.name = "", config.lora.rank = 4;
  }
};

TEST(AdapterRun, ResumesBitForBitAndItsMemoryIsThatOfItsDryRun) {
  for (const char* recipe : {"bf16", "delayed", "block128"}) {
    LoraRuns runs(recipe);
    if (recipe == std::string("delayed")) runs.config.lora.dropout = 0.2;
    const Corpus corpus(runs.config.data, runs.config.train, runs.config.model.shape().vocabulary);
    Trainer trainer(runs.config, corpus, {.console = Console::Kind::quiet});
    const Outcome outcome = trainer.run();
    EXPECT_EQ(outcome.memory.by_category, trainer.plan().memory.by_category) << recipe;
    const std::string whole = outcome.folder, cut = runs.copy_of(whole, "cut");
    fs::remove_all(CheckpointStore(checkpoint_folder(cut)).path(9));
    runs.train(cut);
    testing::expect_same_state(CheckpointStore(checkpoint_folder(whole)).path(9), CheckpointStore(checkpoint_folder(cut)).path(9));
    for (const char* name : {"/weights/adapter_config.json", "/weights/adapter_model.safetensors"})
      EXPECT_EQ(read_file(whole + name, 1 << 24), read_file(cut + name, 1 << 24)) << recipe;
    const auto state = io::SafetensorsFile::open(CheckpointStore(checkpoint_folder(cut)).path(9) + "/state.safetensors");
    EXPECT_TRUE(state.find("engine.model.layers.0.attn.qkv.lora_b"));
    EXPECT_FALSE(state.find("engine.model.layers.0.attn.qkv.weight")) << "what does not train is in the model's folder";
  }
}

TEST(AdapterRun, ResumesOverTheWeightsOfItsBeginAlone) {
  LoraRuns runs("bf16");
  const std::string run = runs.train().folder;
  fs::remove_all(CheckpointStore(checkpoint_folder(run)).path(9));
  RunConfig other = runs.config;
  runs.config.model.init = "", runs.config.lora.rank = 0, runs.config.name = "other", runs.config.train.steps = 3;
  const std::string weights = runs.train().folder + "/weights";
  fs::remove_all(runs.scratch.at("runs/base/weights")), fs::rename(weights, runs.scratch.at("runs/base/weights"));
  runs.config = other;
  EXPECT_TRUE(has(error_of<ConfigError>([&] { runs.train(run); }), "were trained over other frozen weights than those of model.init"));
}

TEST(AdapterRun, BeginsFromAPeftFolderWhichDecidesRankAlphaAndTargets) {
  LoraRuns runs("bf16");
  runs.config.lora.targets = {"q_proj", "v_proj"}, runs.config.lora.alpha = 3;
  const std::string first = runs.train().folder + "/weights";
  runs.config.lora = {.init = first};
  runs.config.train.steps = 0, runs.config.train.max_seconds = 1e-9, runs.config.checkpoint = {.every = 0, .minutes = 0};
  const std::string again = runs.train().folder + "/weights";
  EXPECT_EQ(read_file(first + "/adapter_config.json", 1 << 20), read_file(again + "/adapter_config.json", 1 << 20));
  EXPECT_EQ(read_file(first + "/adapter_model.safetensors", 1 << 24), read_file(again + "/adapter_model.safetensors", 1 << 24));
  runs.config.lora.rank = 2;
  EXPECT_TRUE(has(error_of<ConfigError>([&] { runs.train(); }), "have rank 4, alpha 3 and 1 weights, and lora.rank = 2"));
}

TEST(AdapterRun, NeedsAModelAndOnePrecision) {
  LoraRuns runs("current");
  runs.config.recipe.final_recipe = "bf16";
  EXPECT_TRUE(has(error_of<ConfigError>([&] { runs.train(); }), "recipe.final = \"bf16\": frozen weights are encoded once"));
  runs.config.recipe.final_recipe = "none", runs.config.model.init = "";
  EXPECT_TRUE(has(error_of<ConfigError>([&] { runs.train(); }), "lora.rank needs model.init"));
}

}  // namespace
}  // namespace octet::train
