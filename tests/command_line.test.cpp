#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

#include "octet/base/error.hpp"
#include "tests/testing/child.hpp"
#include "tests/testing/scratch.hpp"

// The `octet` program as its user meets it: a child process, a folder of files, an exit code and what it printed. What it refuses is in bad_input/.

namespace octet {
namespace {
namespace fs = std::filesystem;
using testing::Ended, testing::has, testing::Scratch;

constexpr const char* tiny_config =
    "[model]\nsize = \"llama-tiny\"\nlayers = 1\nwidth = 64\nheads = 4\nkv_heads = 2\nhidden = 96\n"
    "[data]\npath = \"data\"\nsequence_length = 32\neval_fraction = 0.25\n"
    "[train]\nsteps = 2\nbatch = 2\n";

std::string documents(int number) {
  std::string text;
  for (int i = 0; text.size() < 3000; ++i) text += "document " + std::to_string(number) + " counts to " + std::to_string(i * i) + "\n";
  return text;
}

// Runs `octet` in a folder that has four short documents, their dataset `data`, and the configuration tiny.toml.
class CommandLine : public ::testing::Test {
 protected:
  void SetUp() override {
    for (int i = 0; i < 4; ++i) scratch.write("text/" + std::to_string(i) + ".txt", documents(i));
    scratch.write("tiny.toml", tiny_config);
    ASSERT_EQ(run("tokenize --input text/*.txt --output data").code, 0);
  }

  // Arguments are the words of `line`; "" is an empty one.
  Ended run(const std::string& line) const {
    std::vector<std::string> words{OCTET_PROGRAM};
    std::istringstream in(line);
    for (std::string word; in >> word;) words.push_back(word == "\"\"" ? "" : word);
    return testing::run_child(words, scratch.folder());
  }
  Ended succeed(const std::string& line) const {
    Ended ended = run(line);
    EXPECT_EQ(ended.code, 0) << "octet " << line << "\n" << ended.err;
    return ended;
  }
  void expect_files(const std::string& folder, std::initializer_list<const char*> names) const {
    for (const char* name : names) EXPECT_TRUE(fs::exists(scratch.at(folder + "/" + name))) << folder << "/" << name;
  }

  Scratch scratch;
};

TEST_F(CommandLine, LeadsFromTextToAReport) {
  succeed("train tiny.toml --fp8 --name fp8 --quiet");
  expect_files("runs/fp8", {"run.json", "metrics.jsonl", "config.toml", "report.html", "weights/config.json", "weights/model.safetensors"});
  succeed("train runs/fp8/config.toml --quiet");
  expect_files("runs/fp8-2", {"run.json", "metrics.jsonl", "config.toml", "report.html", "weights/model.safetensors"});
  const auto weights = [&](const char* run) { return testing::bytes_of(scratch.at(std::string(run) + "/weights/model.safetensors")); };
  EXPECT_TRUE(weights("runs/fp8") == weights("runs/fp8-2")) << "a run's config.toml must repeat the run";

  const std::string loss = succeed("eval runs/fp8 --data data --sequence 32 --held-out 0.25").out;
  EXPECT_TRUE(loss.starts_with("bf16: loss ") && has(loss, "perplexity")) << loss;
  EXPECT_TRUE(succeed("generate runs/fp8 --prompt count --tokens 4").out.starts_with("count"));
  succeed("export runs/fp8 --output exported --dtype bf16");
  expect_files("exported", {"config.json", "model.safetensors"});
  EXPECT_EQ(succeed("eval exported --data data --sequence 32 --held-out 0.25 --recipe current").out.substr(0, 9), "current: ");
  succeed("report runs/fp8 runs/fp8-2 --output both.html");
  expect_files(".", {"both.html"});
}

TEST_F(CommandLine, ComparesRecipes) {
  const Ended ended = run("compare tiny.toml --recipes current,block128 --quiet");
  EXPECT_TRUE(ended.code == int(ExitCode::done) || ended.code == int(ExitCode::gap)) << ended.err;
  for (const char* part : {"bf16", "current", "block128", "baseline", "report: runs/compare/report.html"}) EXPECT_TRUE(has(ended.out, part)) << ended.out;
  expect_files("runs/compare", {"compare.json", "report.html", "bf16/run.json", "current/metrics.jsonl", "block128/weights/model.safetensors"});
  succeed("report runs/compare --output page.html");
}

TEST_F(CommandLine, WarnsOfOptionsWithoutEffectAndSaysWhy) {
  scratch.write("idle.toml", std::string(tiny_config) + "[recipe]\nhistory = 16\n");
  const std::string all = succeed("train idle.toml --tokens 500 --set recipe.first=1 --set data.eval_fraction=0 --set train.eval_every=1 --set optim.schedule.decay=0.1").err;
  for (const char* part : {"warning: idle.toml:16:1: `recipe.history` has no effect: no history is kept under bf16\n",
                           "warning: --set: `recipe.first` has no effect: nothing has 8 bits under bf16\n",
                           "warning: `train.tokens` has no effect: train.steps is set",
                           "warning: --set: `train.eval_every` has no effect: nothing is held out",
                           "warning: --set: `optim.schedule.decay` has no effect: only optim.schedule.kind = \"wsd\" reads it\n"})
    EXPECT_TRUE(has(all, part)) << part << "\nin\n" << all;
  EXPECT_FALSE(has(succeed("plan idle.toml --fp8 delayed").err, "warning"));
  EXPECT_TRUE(has(succeed("plan idle.toml --fp8 current").err, "no history is kept under current"));
  EXPECT_FALSE(has(succeed("plan tiny.toml").err, "warning")) << "defaults are no mistake";
}

TEST_F(CommandLine, EveryCommandExplainsItselfByExamples) {
  EXPECT_TRUE(has(succeed("--help").out, "octet COMMAND --help"));
  for (const char* command : {"train", "compare", "tokenize", "eval", "generate", "export", "report", "plan", "bench", "doctor"}) {
    const Ended ended = succeed(std::string(command) + " --help");
    EXPECT_TRUE(has(ended.out, std::string("Examples:\n  octet ") + command)) << ended.out;
    EXPECT_EQ(ended.err, "");
  }
}

}  // namespace
}  // namespace octet
