#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "octet/base/error.hpp"
#include "tests/testing/child.hpp"
#include "tests/testing/scratch.hpp"

// The `octet` program as its user meets it: a child process, a folder of files, an exit code and what it printed.

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
  void copy(const std::string& from, const std::string& to) const {
    fs::copy(scratch.at(from), scratch.at(to), fs::copy_options::recursive);
  }
  std::string shard_in(const std::string& folder) const {
    for (const auto& entry : fs::directory_iterator(scratch.at(folder)))
      if (entry.path().extension() == ".tok") return entry.path().string();
    return "";
  }
  void expect_files(const std::string& folder, std::initializer_list<const char*> names) const {
    for (const char* name : names) EXPECT_TRUE(fs::exists(scratch.at(folder + "/" + name))) << folder << "/" << name;
  }

  Scratch scratch;
};

struct Refusal {
  std::string line;
  ExitCode code;
  std::vector<std::string> says;  // the file or the key, the place, the remedy
};

class Refused : public CommandLine {
 protected:
  void expect(const std::vector<Refusal>& refusals) const {
    for (const Refusal& r : refusals) {
      const Ended ended = run(r.line);
      EXPECT_EQ(ended.code, int(r.code)) << "octet " << r.line << "\n" << ended.err;
      EXPECT_TRUE(ended.err.starts_with("octet: ") && ended.err.ends_with("\n") && std::count(ended.err.begin(), ended.err.end(), '\n') == 1)
          << "octet " << r.line << "\nmust print one line, printed\n" << ended.err;
      EXPECT_EQ(ended.out, "") << "octet " << r.line;
      for (const auto& part : r.says) EXPECT_TRUE(has(ended.err, part)) << "octet " << r.line << "\nlacks \"" << part << "\" in\n" << ended.err;
    }
  }
};

TEST_F(Refused, ACommandLineThatCannotBeUnderstood) {
  expect({
      {"", ExitCode::usage, {"subcommand is required", "octet --help"}},
      {"trian", ExitCode::usage, {"no command `trian`", "did you mean `train`?"}},
      {"train --stpes 3", ExitCode::usage, {"no option `--stpes`", "did you mean `--steps`?", "octet train --help"}},
      {"train --steps x", ExitCode::usage, {"--steps", "octet train --help"}},
      {"train tiny.toml --steps -3", ExitCode::usage, {"--steps", "at least 1"}},
      {"train tiny.toml another.toml", ExitCode::usage, {"another.toml", "octet train --help"}},
      {"train tiny.toml --max-time 5x", ExitCode::usage, {"--max-time \"5x\"", "90s, 5m or 1h30m"}},
      {"train --data data", ExitCode::usage, {"no length", "train.steps", "--max-time"}},
      {"train --steps 2", ExitCode::usage, {"data.path is not set", "--data", "octet tokenize"}},
      {"train missing.toml", ExitCode::usage, {"missing.toml", "check the path"}},
      {"compare tiny.toml --recipes current,current", ExitCode::usage, {"--recipes", "current twice"}},
      {"compare tiny.toml --tolerance x", ExitCode::usage, {"--tolerance \"x\"", "0.005 or 0.5%"}},
      {"tokenize --output there", ExitCode::usage, {"--input is required", "octet tokenize --help"}},
      {"tokenize --input text/*.md --output there", ExitCode::usage, {"text/*.md", "matches no file", "check the path"}},
      {"tokenize --input text/*.txt --output data", ExitCode::usage, {"'data' already holds a dataset", "--force"}},
  });
}

TEST_F(Refused, AConfigurationThatCannotBeMeant) {
  scratch.write("mistyped.toml", "[train]\nstepps = 2\n");
  scratch.write("typed.toml", "[train]\nsteps = \"2\"\n");
  scratch.write("range.toml", "[optim]\nlearning_rate = -1\n");
  scratch.write("twice.toml", "[train]\nsteps = 2\nsteps = 3\n");
  scratch.write("broken.toml", "[train\nsteps = 2\n");
  expect({
      {"train mistyped.toml", ExitCode::usage, {"mistyped.toml:2:1: ", "`train.stepps`", "did you mean `train.steps`?"}},
      {"train typed.toml", ExitCode::usage, {"typed.toml:2:9: ", "`train.steps` must be an integer >= 0", "got \"2\""}},
      {"train range.toml", ExitCode::usage, {"range.toml:2:17: ", "`optim.learning_rate` must be a number > 0", "got -1"}},
      {"train twice.toml", ExitCode::usage, {"twice.toml:3:", "'steps'", "may stand once only"}},
      {"train broken.toml", ExitCode::usage, {"broken.toml:1:", "not TOML"}},
      {"train tiny.toml --set optim.learning_rat=1", ExitCode::usage, {"--set optim.learning_rat=1: ", "did you mean `optim.learning_rate`?"}},
      {"train tiny.toml --set train.steps", ExitCode::usage, {"--set train.steps: ", "section.key=value"}},
      {"train tiny.toml --set model.layers=9999999", ExitCode::usage, {"`model.layers`", "[0, 4096]"}},
      {"train tiny.toml --fp8 mxfp9", ExitCode::usage, {"\"mxfp9\"", "did you mean \"mxfp8\"?", "recipes are fp32, bf16"}},
      {"train tiny.toml --set recipe.name=curent", ExitCode::usage, {"`recipe.name`", "did you mean current?"}},
      {"train tiny.toml --fp8 rowwise --set recipe.format=hybrid", ExitCode::usage, {"recipe.format = \"hybrid\"", "leave the key out"}},
      {"train tiny.toml --set model.size=llama-tini", ExitCode::usage, {"model.size = \"llama-tini\"", "did you mean \"llama-tiny\"?"}},
      {"train tiny.toml --set model.width=65", ExitCode::usage, {"model.width = 65", "a multiple of model.heads = 4"}},
      {"train tiny.toml --set model.heads=8 --set model.kv_heads=3", ExitCode::usage, {"model.heads = 8", "model.kv_heads = 3"}},
      {"train tiny.toml --name a/b", ExitCode::usage, {"name = \"a/b\"", "without \"/\""}},
      {"plan tiny.toml --set data.sequence_length=100000", ExitCode::usage, {"data.sequence_length = 100000", "at most 1024", "shorten"}},
      {"train tiny.toml --set model.width=65536 --set model.hidden=65536 --set model.layers=4", ExitCode::device, {"TiB", "are free", "train.batch = 1", "smaller model"}},
  });
}

TEST_F(Refused, DataThatCannotBeTrainedOn) {
  for (const char* name : {"truncated", "corrupted", "lost", "unfinished"}) copy("data", name);
  fs::resize_file(shard_in("truncated"), fs::file_size(shard_in("truncated")) - 100);
  std::fstream(shard_in("corrupted"), std::ios::in | std::ios::out | std::ios::binary).seekp(1000).write("\xff\xff", 2);
  fs::remove(shard_in("lost"));
  fs::remove(scratch.at("unfinished/dataset.toml"));
  scratch.write("empty.txt", "");
  expect({
      {"train tiny.toml --data nowhere", ExitCode::usage, {"data.path", "no folder 'nowhere'", "octet tokenize"}},
      {"train tiny.toml --data unfinished", ExitCode::usage, {"'unfinished' holds no dataset.toml", "octet tokenize"}},
      {"train tiny.toml --data truncated", ExitCode::data, {"truncated/shard-", "is truncated", "copy the file again"}},
      {"train tiny.toml --data corrupted", ExitCode::data, {"corrupted/shard-", "byte 256", "checksum", "copy the file again"}},
      {"train tiny.toml --data lost", ExitCode::data, {"lost/shard-", "no such file", "octet tokenize"}},
      {"train tiny.toml --set model.vocabulary=100", ExitCode::usage, {"'data'", "token ids up to 256", "set model.vocabulary to at least 257"}},
      {"tokenize --input empty.txt --output there", ExitCode::data, {"empty.txt", "no text", "choose files with text"}},
      {"train tiny.toml --set data.sequence_length=100000", ExitCode::usage, {"data.sequence_length = 100000", "training part of 'data'", "shorten"}},
      {"train tiny.toml --set data.eval_fraction=1", ExitCode::usage, {"`data.eval_fraction`", "[0, 1)"}},
  });
}

TEST_F(Refused, FoldersThatHoldNoModelNoRunOrCannotBeWritten) {
  succeed("train tiny.toml --name trained --quiet");
  succeed("export runs/trained --output model");
  copy("model", "cut");
  fs::resize_file(scratch.at("cut/model.safetensors"), fs::file_size(scratch.at("cut/model.safetensors")) - 100);
  expect({
      {"eval data --data data", ExitCode::usage, {"data: ", "config.json", "finished run"}},
      {"generate data", ExitCode::usage, {"data: ", "config.json", "finished run"}},
      {"export data --output there", ExitCode::usage, {"data: ", "config.json", "finished run"}},
      {"report data", ExitCode::usage, {"data: ", "run.json", "name the folder of a run"}},
      {"eval model --data data --sequence 32 --held-out 0", ExitCode::usage, {"held-out part of 'data' is empty", "--held-out"}},
      {"eval model --data data --sequence 100000", ExitCode::usage, {"held-out part of 'data'", "--sequence"}},
      {"eval model --data data --recipe curent", ExitCode::usage, {"\"curent\"", "did you mean \"current\"?"}},
      {"eval cut --data data --sequence 32", ExitCode::data, {"cut/model.safetensors", "cut off", "fetch it again"}},
      {"generate cut", ExitCode::data, {"cut/model.safetensors", "cut off", "fetch it again"}},
      {"export cut --output there", ExitCode::data, {"cut/model.safetensors", "cut off", "fetch it again"}},
      {"train tiny.toml --output tiny.toml/runs", ExitCode::io, {"tiny.toml/runs", "Not a directory", "--set output=FOLDER"}},
      {"tokenize --input text/*.txt --output tiny.toml/data", ExitCode::io, {"tiny.toml/data", "Not a directory", "another --output"}},
      {"export model --output tiny.toml/model", ExitCode::io, {"tiny.toml/model", "Not a directory", "choose another"}},
      {"report runs/trained --output tiny.toml/page.html", ExitCode::io, {"tiny.toml/page.html", "Not a directory", "choose another"}},
  });
}

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
