#include "octet/train/study/study.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "octet/config/write.hpp"
#include "octet/telemetry/run_facts.hpp"
#include "octet/train/study/first_gradient.hpp"
#include "octet/train/run/checkpoints/resume.hpp"
#include "tests/testing/scratch.hpp"
#include "tests/testing/testing.hpp"

namespace octet::train {
namespace {
namespace fs = std::filesystem;
using octet::testing::bytes_of, octet::testing::error_of, octet::testing::has, octet::testing::Scratch;

StudyConfig two_seeds_of_three_recipes(const Scratch& scratch) {
  StudyConfig c;
  c.run.output = scratch.folder(), c.run.seed = 5;
  c.compare.recipes = {"current", "rowwise"}, c.compare.seeds = 2, c.compare.twins = 0, c.compare.text = "0123";
  return c;
}

std::vector<std::string> names(const StudyConfig& c) {
  std::vector<std::string> out;
  for (const StudyRun& run : c.runs()) out.push_back(format("{} {} {}", run.arm, run.seed, run.name));
  return out;
}

TEST(Study, TrainsSeedBySeedAndTheBaselineFirst) {
  StudyConfig c;
  c.run.seed = 5, c.compare.recipes = {"current", "bf16", "block128"}, c.compare.seeds = 2, c.compare.twins = 0;
  EXPECT_EQ(names(c), (std::vector<std::string>{"bf16 5 bf16-seed5", "current 5 current-seed5", "block128 5 block128-seed5",
                                                "bf16 6 bf16-seed6", "current 6 current-seed6", "block128 6 block128-seed6"}));
  c.compare.seeds = 1, c.compare.baseline = "fp32";
  EXPECT_EQ(names(c), (std::vector<std::string>{"fp32 5 fp32", "current 5 current", "bf16 5 bf16", "block128 5 block128"}));
}

TEST(Study, TrainsTwinsOfTheBaselineBesideIt) {
  StudyConfig c;
  c.compare.recipes = {"current"}, c.compare.twins = 2;
  EXPECT_EQ(names(c), (std::vector<std::string>{"bf16 1 bf16", "bf16 1 bf16-twin1", "bf16 1 bf16-twin2", "current 1 current"}));
  const std::vector<StudyRun> runs = c.runs();
  EXPECT_EQ(runs[0].twin, 0);
  EXPECT_EQ(runs[2].twin, 2);
  std::vector<std::string> differ;
  for (const config::Difference& d : config::differences(c.config_of(runs[0]), c.config_of(runs[2]))) differ.push_back(d.key);
  EXPECT_EQ(differ, std::vector<std::string>{"name"});
}

TEST(Study, TakesArmsWithAnyKeysBesideRecipesAndAsTheBaseline) {
  StudyConfig c;
  c.compare.twins = 0, c.compare.recipes = {"current"};
  c.compare.arms = {"o3: recipe.name=current, optim.learning_rate=1e-3, recipe.keep_bf16=[\"layers.0.*\", \"head\"]",
                    "slow:optim.learning_rate = 2e-4"};
  EXPECT_EQ(names(c), (std::vector<std::string>{"bf16 1 bf16", "current 1 current", "o3 1 o3", "slow 1 slow"}));
  const RunConfig o3 = c.config_of(c.runs()[2]);
  EXPECT_EQ(o3.recipe.recipe, "current");
  EXPECT_EQ(o3.optim.learning_rate, 1e-3);
  EXPECT_EQ(o3.recipe.keep_bf16, (std::vector<std::string>{"layers.0.*", "head"}));
  EXPECT_EQ(c.config_of(c.runs()[3]).optim.learning_rate, 2e-4);
  EXPECT_EQ(c.config_of(c.runs()[3]).recipe.recipe, "bf16");
  c.compare.baseline = "slow";
  EXPECT_EQ(names(c), (std::vector<std::string>{"slow 1 slow", "current 1 current", "o3 1 o3"}));
}

TEST(Study, RefusesBadArmsByName) {
  const auto refused = [](const std::vector<std::string>& arms) {
    StudyConfig c;
    c.compare.arms = arms;
    return error_of<ConfigError>([&] { c.runs(); });
  };
  EXPECT_TRUE(has(refused({"a: optim.lr=1"}), "--arm a: optim.lr=1: unknown key `optim.lr`; did you mean `optim.learning_rate`?"));
  EXPECT_TRUE(has(refused({"a: optim.beta1=2"}), "--arm a: "));
  EXPECT_TRUE(has(refused({"a: recipe.name=curent"}), "--arm a: recipe.name=curent: `recipe.name` must be"));
  EXPECT_TRUE(has(refused({"a: seed=2", "a: seed=3"}), "--arm names a twice"));
  EXPECT_TRUE(has(refused({"bf16: optim.beta1=0.8", "bf16: optim.beta1=0.7"}), "bf16 twice"));
  EXPECT_TRUE(has(refused({"a: seed=2"}), "--arm a: all runs of a comparison have the same `seed`"));
  EXPECT_TRUE(has(refused({"a: data.sequence_length=2"}), "the same `data.sequence_length`"));
  EXPECT_TRUE(has(refused({"bf16-twin1: optim.beta1=0.8"}), "two runs would have the folder bf16-twin1"));
  for (const char* name : {"", ".", "..", "a/b", ".hidden", "a b", "\x1b[2J", "\xc3\xa9"})
    EXPECT_TRUE(has(refused({name + std::string(": seed=1")}), "a name has 1 to 64 of")) << name;
  EXPECT_TRUE(has(refused({std::string(65, 'a') + ": seed=1"}), "a name has 1 to 64 of"));
  for (const char* text : {"a:", "a: seed=1,", "a: ,seed=1"}) EXPECT_TRUE(has(refused({text}), "a key is missing")) << text;
  EXPECT_TRUE(has(refused({"a: recipe.name=rowwise, recipe.format=hybrid"}), "hybrid"));
}

TEST(Study, RefusesRecipesThatDoNotExistOrStandTwice) {
  StudyConfig c;
  c.compare.recipes = {"current", "delayed", "current"};
  EXPECT_TRUE(has(error_of<ConfigError>([&] { c.runs(); }), "current twice"));
  c.compare.recipes = {"curent"};
  EXPECT_TRUE(has(error_of<ConfigError>([&] { c.runs(); }), "did you mean \"current\"?"));
  c.compare.recipes = {}, c.compare.baseline = "bf17";
  EXPECT_TRUE(has(error_of<ConfigError>([&] { c.runs(); }), "did you mean \"bf16\"?"));
}

TEST(Study, TellsEachRunWhatItIsToldAndWhatIsTheRunsOwn) {
  const Scratch scratch;
  StudyConfig c = two_seeds_of_three_recipes(scratch);
  c.run.name = "which", c.run.recipe.options.format = "hybrid", c.run.train.batch = 7, c.run.checkpoint.every = 3;
  const Study study = Study::begin(c);
  ASSERT_EQ(study.folder(), scratch.at("which"));
  for (const StudyRun& run : c.runs()) {
    RunConfig told = study.config_of(run);
    EXPECT_EQ(told.output + "/" + told.name, study.folder_of(run));
    EXPECT_EQ(told.recipe.options.format, run.arm == "rowwise" ? "default" : "hybrid") << run.arm << " has that format or its own";
    std::vector<std::string> differ;
    for (const config::Difference& d : config::differences(c.run, told)) differ.push_back(d.key);
    for (const char* own : {"name", "output", "seed", "recipe.name", "recipe.format", "checkpoint.keep"}) std::erase(differ, own);
    EXPECT_EQ(differ, std::vector<std::string>{});
    EXPECT_EQ(told.checkpoint.keep, 1);
    EXPECT_EQ(study.baseline_of(run).name, format("bf16-seed{}", run.seed));
  }
}

TEST(Study, IsOpenedAsItWasBegunAndByOneProcessAtATime) {
  const Scratch scratch;
  const StudyConfig asked = two_seeds_of_three_recipes(scratch);
  std::string folder;
  {
    const Study study = Study::begin(asked);
    folder = study.folder();
    const std::string message = error_of<IoError>([&] { Study::attend(folder).hold(); });
    EXPECT_TRUE(has(message, folder) && has(message, "still going")) << message;
  }
  Study again = Study::attend(folder + "//");
  again.hold();
  EXPECT_EQ(again.folder(), folder);
  EXPECT_EQ(config::to_toml(again.config()), config::to_toml(asked));
}

TEST(Study, WhoseFileWasCutOffAnywhereIsRefused) {
  const Scratch scratch;
  const std::string folder = Study::begin(two_seeds_of_three_recipes(scratch)).folder(), path = folder + "/" + Study::file_name,
                    whole = bytes_of(path);
  for (std::size_t bytes = 0; bytes + 1 < whole.size(); ++bytes) {  // a line break alone is no loss
    scratch.write("compare/study.toml", whole.substr(0, bytes));
    const std::string message = error_of<ConfigError>([&] { Study::attend(folder); });
    ASSERT_TRUE(has(message, path) && has(message, "restore it from a copy, or begin a new comparison")) << bytes << " bytes: " << message;
  }
}

TEST(Study, KnowsWhichRunsAreOverAndClearsThem) {
  const Scratch scratch;
  const Study study = Study::begin(two_seeds_of_three_recipes(scratch));
  const std::vector<StudyRun> runs = study.config().runs();
  const auto file = [&](const StudyRun& run, const std::string& name) { return scratch.write("compare/" + run.name + "/" + name, "x"); };
  EXPECT_FALSE(study.has_begun(runs[0]) || study.is_over(runs[0]));
  for (const StudyRun& run : runs) file(run, "checkpoints/step-000000001/state.safetensors");
  EXPECT_TRUE(study.has_begun(runs[0]) && !study.is_over(runs[0])) << "killed before it had its run.json";
  for (const auto& [state, over] : {std::pair(telemetry::RunState::running, false),
                                    {telemetry::RunState::stopped, false},
                                    {telemetry::RunState::finished, true},
                                    {telemetry::RunState::diverged, true}}) {
    telemetry::RunFacts facts;
    facts.state = state;
    telemetry::write_run_facts(study.folder_of(runs[1]) + "/run.json", facts);
    EXPECT_EQ(study.is_over(runs[1]), over) << to_text(state);
  }
  const std::string gradient = file(runs[0], "first-gradient.safetensors"), other = file(runs[3], "first-gradient.safetensors");
  for (const std::size_t i : {0u, 1u}) {
    study.clear(runs[i]);
    EXPECT_FALSE(fs::exists(checkpoint_folder(study.folder_of(runs[i]))));
    EXPECT_TRUE(fs::exists(gradient)) << "the next recipe needs it";
  }
  study.clear(runs[2]);
  EXPECT_FALSE(fs::exists(gradient));
  EXPECT_TRUE(fs::exists(other) && fs::exists(checkpoint_folder(study.folder_of(runs[3])))) << "the next seed's";
}

TEST(FirstGradient, IsReadAsItWasWritten) {
  const Scratch scratch;
  const std::vector<float> a = octet::testing::gaussian(1000, 1), b = octet::testing::gaussian(1000, 2);
  write_first_gradient(scratch.folder(), a);
  double ab = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) ab += double(a[i]) * b[i], aa += double(a[i]) * a[i], bb += double(b[i]) * b[i];
  EXPECT_EQ(cosine_with_first_gradient(scratch.folder(), b), ab / std::sqrt(aa * bb));
  EXPECT_TRUE(has(error_of<DataError>([&] { cosine_with_first_gradient(scratch.folder(), std::vector<float>(999)); }),
                  "1000 values, the model has 999 parameters"));
  const std::string message = error_of<DataError>([&] { cosine_with_first_gradient(scratch.at("elsewhere"), b); });
  EXPECT_TRUE(has(message, "elsewhere/first-gradient.safetensors: there is no such file") && has(message, "trained again")) << message;
}

TEST(FirstGradient, IsRefusedWhenAnyOfItsBytesWasDamaged) {
  const Scratch scratch;
  const std::vector<float> a{1, 2, -3};
  write_first_gradient(scratch.folder(), a);
  const std::string whole = bytes_of(first_gradient_file(scratch.folder()));
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] = char(~damaged[i]);
    scratch.write("first-gradient.safetensors", damaged);
    EXPECT_TRUE(has(error_of<DataError>([&] { cosine_with_first_gradient(scratch.folder(), a); }), "first-gradient.safetensors"))
        << "byte " << i;
  }
}

}  // namespace
}  // namespace octet::train
