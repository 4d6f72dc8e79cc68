#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <regex>

#include "octet/base/error.hpp"
#include "tests/testing/octet.hpp"

// The `octet` program as its user meets it: a child process, a folder of files, an exit code and what it printed. What it refuses is in
// bad_input/.

namespace octet {
namespace {
namespace fs = std::filesystem;
using testing::Ended, testing::has, testing::Scratch;

// Runs `octet` in a folder that has four short documents, their dataset `data`, and the configuration tiny.toml.
class CommandLine : public ::testing::Test {
 protected:
  void SetUp() override {
    testing::write_dataset(scratch);
    scratch.write("tiny.toml", testing::tiny_config());
  }

  Ended run(const std::string& line) const { return testing::run_octet(line, scratch.folder()); }
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

TEST_F(CommandLine, PlansOnGpusWithoutOneAndTheWrittenRunIsPlannedAgain) {
  const Ended planned = succeed("plan tiny.toml --fp8 --set train.accumulate=8 --gpus 4 --runnable --machine h200 --write job");
  for (const char* part : {"4 GPUs of h200", "tokens/s per GPU", "limit    ", "BF16 instead", "written  job/plan.toml"})
    EXPECT_TRUE(has(planned.out, part)) << part << "\n" << planned.out;
  expect_files("job", {"plan.toml", "plan.sbatch"});
  EXPECT_TRUE(has(succeed("plan job/plan.toml").out, "memory "));
  const Ended pipeline =
      run("plan --set model.size=llama-3-8b --set train.batch=64 --set data.sequence_length=8192 --gpus 64 --write there");
  EXPECT_TRUE(pipeline.code == 0 || (pipeline.code == 2 && has(pipeline.err, "--runnable"))) << pipeline.err;
  const Ended on_rails = succeed("plan tiny.toml --gpus 16 --set train.accumulate=8 --network 4x50 --oversubscription 2 --rails");
  for (const char* says : {"25 GB/s to other nodes per GPU (200 per node: 4 cards of 50), spine oversubscribed 2:1, rails",
                           "all nodes on the leaf switches of their rails (--nodes-per-leaf)"})
    EXPECT_TRUE(has(std::regex_replace(on_rails.out, std::regex("\n +"), " "), says)) << on_rails.out;
  EXPECT_EQ(run("plan --set model.size=llama-3-8b --gpus 1").code, 69) << "states need more than 80 GB";
  const Ended emulated = succeed("plan tiny.toml --fp8 mxfp8 --set recipe.emulation=true --gpus 4 --machine h200");
  EXPECT_TRUE(has(emulated.out, "layout")) << emulated.out;
  EXPECT_FALSE(has(succeed("plan tiny.toml --gpus 4 --machine a100").out, "FP8 instead")) << "it has no FP8";
  const std::string memory = succeed("plan tiny.toml --fp8 --steps 20 --set recipe.final=bf16").out;
  for (const char* part :
       {" than under bf16", "less with recipe.activations = \"fp8\"", "linear layers in the last 10% of the steps", "final  "})
    EXPECT_TRUE(has(memory, part)) << part << memory;
  succeed("plan --schedule zb.svg --kind zero_bubble");
  EXPECT_TRUE(testing::bytes_of(scratch.at("zb.svg")).starts_with("<svg"));
}

TEST_F(CommandLine, APlanWithoutALayoutSaysWhyOnStandardError) {
  const Ended ended = run("plan --gpus 7919");
  EXPECT_EQ(ended.code, int(ExitCode::device));
  EXPECT_TRUE(ended.err.starts_with("octet: no layout is valid on 7,919 GPUs: ranks.data = 7919: 4 sequences") &&
              has(ended.err, "choose another --gpus"))
      << ended.err;
  EXPECT_TRUE(has(ended.out, "model    llama-tiny")) << ended.out;
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
  scratch.write("prompts.jsonl", "{\"prompt\":\"count\"}\n{\"prompt\":\"a much longer one\"}\n{\"prompt\":\"d\"}\n");
  const std::string greedy = " --temperature 0 --tokens 9 --threads 1",
                    lines = succeed("generate runs/fp8 --prompts prompts.jsonl --batch 2" + greedy).out;
  EXPECT_EQ(std::ranges::count(lines, '\n'), 3) << lines;
  EXPECT_TRUE(lines.starts_with("{\"prompt\":\"count\",\"text\":\"") && lines.ends_with("\",\"tokens\":9,\"end\":\"length\"}\n")) << lines;
  EXPECT_EQ(succeed("generate runs/fp8 --prompts prompts.jsonl --batch 1" + greedy).out, lines) << "each text alone";
  EXPECT_EQ(std::ranges::count(succeed("generate runs/fp8 --prompts prompts.jsonl --cache e4m3" + greedy).out, '\n'), 3);
  const Ended chat = testing::run_child(
      {"/bin/sh", "-c", "printf 'hello\\n/new\\nhello\\n' | \"$0\" chat runs/fp8 --chat-template chatml" + greedy, OCTET_PROGRAM},
      scratch.folder());
  EXPECT_EQ(chat.code, 0) << chat.err;
  EXPECT_TRUE(!chat.out.empty() && chat.out.size() % 2 == 0 &&
              chat.out.substr(0, chat.out.size() / 2) == chat.out.substr(chat.out.size() / 2))
      << chat.out;
  succeed("export runs/fp8 --output exported --dtype bf16");
  expect_files("exported", {"config.json", "model.safetensors"});
  EXPECT_EQ(succeed("eval exported --data data --sequence 32 --held-out 0.25 --recipe current").out.substr(0, 9), "current: ");
  succeed("report runs/fp8 runs/fp8-2 --output both.html");
  expect_files(".", {"both.html"});
}

// The figure in the run's record, for its last step.
double recorded_eval_loss(const std::string& folder) {
  const std::string metrics = testing::bytes_of(folder + "/metrics.jsonl");
  const auto event = metrics.rfind("\"event\":\"eval\"");
  const auto loss = metrics.find("\"loss\":", event);
  return event == std::string::npos || loss == std::string::npos ? -1 : std::strtod(metrics.c_str() + loss + 7, nullptr);
}
double printed_loss(const std::string& out) {
  const auto loss = out.find(": loss ");
  return loss == std::string::npos ? -2 : std::strtod(out.c_str() + loss + 7, nullptr);
}

// Their engine is another one at the end than at the start.
TEST_F(CommandLine, RanksThatEndInAnotherPrecisionWriteTheReport) {
  for (const std::string last : {"bf16", "bf16_forward"}) {
    succeed("launch --device cpu --ranks 2 train tiny.toml --quiet --set recipe.name=current --set recipe.final=" + last + " --name " +
            last);
    expect_files("runs/" + last, {"report.html"});
  }
}

TEST_F(CommandLine, EvaluatesARunAsTheRunItselfDid) {
  scratch.write("more/a.txt", "another text, which is evaluated as a whole\n" + std::string(500, 'x'));
  scratch.write("more/b.txt", std::string(300, 'y') + " and its second document");
  succeed("tokenize --input more/*.txt --output other");
  const std::string keys = "train tiny.toml --quiet --set train.eval_tokens=320 --set data.document_mask=";
  for (const char* line : {"false --name joined", "true --name masked", "false --name own --set data.eval_path=other"}) {
    succeed(keys + line);
    const std::string run = "runs/" + testing::words_of(line)[2], out = succeed("eval " + run).out;
    EXPECT_NEAR(printed_loss(out), recorded_eval_loss(scratch.at(run)), 2e-6) << out;  // six digits; sums of another micro-batch
    EXPECT_NEAR(printed_loss(succeed("eval " + run + "/weights").out), printed_loss(out), 1e-9);
  }
  EXPECT_NE(printed_loss(succeed("eval runs/joined --data other --all --document-mask").out),
            printed_loss(succeed("eval runs/joined --data other --all").out));
  EXPECT_TRUE(has(succeed("eval runs/joined --tokens 0").out, " 3,008 tokens")) << "one of four documents, in windows of 32";
  EXPECT_TRUE(has(succeed("eval runs/joined --all --data other").out, " 864 tokens"));
  EXPECT_TRUE(has(succeed("eval runs/joined --all --data other --sequence 16 --tokens 100").out, " 112 tokens"));
  EXPECT_TRUE(has(run("eval runs/joined --all --held-out 0.1").err, "leave one out"));
  EXPECT_EQ(run("eval runs/joined/weights --data nowhere").code, int(ExitCode::usage));
}

TEST_F(CommandLine, EvaluationSaysWhichLayersRunInTheRecipe) {
  succeed("train tiny.toml --quiet --name run");
  EXPECT_FALSE(has(succeed("eval runs/run").out, "layers in"));
  const std::string out = succeed("eval runs/run --recipe current").out;
  EXPECT_TRUE(has(out, " tokens in sequences of 32; 4 of 5 layers in current, others:\n  lm_head  bf16 (head: recipe.head = \"bf16\")\n"))
      << out;
  EXPECT_TRUE(has(succeed("eval runs/run --recipe current --head recipe").out, "; 5 of 5 layers in current\n"));
  const std::string some = succeed("eval runs/run --recipe current --set recipe.keep_bf16=*.mlp.*").out;
  EXPECT_TRUE(has(some, "; 2 of 5 layers in current") && has(some, "matches recipe.keep_bf16")) << some;
  const std::string rules = succeed("eval runs/run --set recipe.rules=[{path=\"*.qkv\",recipe=\"current\"}]").out;
  EXPECT_TRUE(rules.starts_with("bf16: ") && has(rules, "layers.0.attn.qkv")) << rules;
  succeed("train tiny.toml --quiet --name odd --set model.width=40 --set model.hidden=72");
  const Ended none = run("eval runs/odd --recipe mxfp8");
  EXPECT_EQ(none.code, int(ExitCode::usage));
  EXPECT_TRUE(has(none.err, "none of the model's 5 linear layers runs in it") && has(none.err, "is not a multiple of 32")) << none.err;
  EXPECT_EQ(none.out, "");
  EXPECT_EQ(run("generate runs/odd --recipe mxfp8 --tokens 2").err, none.err);
}

// The first step of a run has no speed, since it also touches its memory for the first time.
TEST_F(CommandLine, TheLastLineHasNoFiguresThatTheRunDoesNotHave) {
  const std::string line = "train tiny.toml --steps 1 --name short --set data.eval_fraction=0";
  const Ended first = succeed(line), second = succeed(line);
  for (const Ended& ended : {first, second}) {
    EXPECT_TRUE(ended.out.starts_with("all steps done: 1 steps, train loss ")) << ended.out;
    for (const char* none : {"nan", "tok/s", "eval loss"}) EXPECT_FALSE(has(ended.out, none)) << ended.out;
  }
  EXPECT_FALSE(has(first.err, "exists already"));
  EXPECT_TRUE(has(second.err, "the folder runs/short exists already: this one is runs/short-2")) << second.err;
}

TEST_F(CommandLine, TrainsATokenizerAndUsesItFromTextToText) {
  succeed("tokenizer train --input text/*.txt --vocabulary 300 --least-count 1 --output own/tokenizer.json");
  expect_files("own", {"tokenizer.json", "tokenizer_config.json"});
  EXPECT_TRUE(has(succeed("tokenizer inspect --tokenizer own").out, "<|endoftext|>"));
  const std::string text = testing::bytes_of(scratch.at("text/0.txt")), ids = succeed("tokenizer encode --tokenizer own -i text/0.txt").out;
  EXPECT_LT(std::count(ids.begin(), ids.end(), ' '), std::ptrdiff_t(text.size())) << "some pairs are merged";
  scratch.write("ids.txt", ids);
  EXPECT_EQ(succeed("tokenizer decode --tokenizer own -i ids.txt").out, text);

  succeed("tokenizer train --input text/*.txt --vocabulary 300 --least-count 1 --digits 1 --output digits/tokenizer.json");
  EXPECT_TRUE(has(testing::bytes_of(scratch.at("own/tokenizer.json")), "\\\\p{N}{1,3}"));
  EXPECT_TRUE(has(testing::bytes_of(scratch.at("digits/tokenizer.json")), "\\\\p{N}|"));

  succeed("tokenize --input text/*.txt --model own --output own-data");
  expect_files("own-data", {"tokenizer.json", "tokenizer_config.json"});
  EXPECT_TRUE(has(succeed("inspect own-data").out, "bpe:"));
  succeed("train tiny.toml --data own-data --set model.vocabulary=300 --set data.sequence_length=8 --name own --quiet");
  EXPECT_TRUE(succeed("generate runs/own --prompt count --tokens 4").out.starts_with("count")) << "the run has its dataset's tokenizer";
  EXPECT_EQ(succeed("eval runs/own/weights --data own-data --sequence 8 --held-out 0.25").err, "");
  const Ended other = run("eval runs/own/weights --data data --sequence 8 --held-out 0.25");
  EXPECT_EQ(other.code, int(ExitCode::usage));
  EXPECT_TRUE(has(other.err, "was made with the byte tokenizer")) << other.err;

  succeed("export runs/own --output bare");
  fs::remove(scratch.at("bare/tokenizer.json"));
  const Ended unknown = run("generate bare --prompt count --tokens 4");
  EXPECT_EQ(unknown.code, int(ExitCode::usage));
  EXPECT_EQ(unknown.out, "");
  EXPECT_TRUE(has(unknown.err, "its tokenizer is unknown")) << unknown.err;
  EXPECT_TRUE(has(succeed("eval bare --data own-data --sequence 8 --held-out 0.25").err, "is unknown"));
  EXPECT_TRUE(succeed("generate bare --tokenizer own --prompt count --tokens 4").out.starts_with("count"));
}

TEST_F(CommandLine, RefusesToTrainWithAnotherTokenizerThanTheDatasets) {
  succeed("tokenizer train --input text/*.txt --vocabulary 300 --least-count 1 --output own/tokenizer.json");
  succeed("tokenize --input text/*.txt --model own --output own-data");
  const std::string train = "train tiny.toml --data own-data --set model.vocabulary=300 --set data.sequence_length=8 --name own --quiet ";
  succeed(train + "--set checkpoint.every=1");
  const std::string right = testing::bytes_of(scratch.at("own-data/tokenizer.json"));
  scratch.write("own-data/tokenizer.json", right + " ");
  const Ended altered = run(train);
  EXPECT_EQ(altered.code, int(ExitCode::data));
  EXPECT_TRUE(has(altered.err, "own-data/tokenizer.json: it must be the tokenizer bpe:")) << altered.err;
  fs::remove(scratch.at("own-data/tokenizer.json"));
  const Ended missing = run(train);
  EXPECT_EQ(missing.code, int(ExitCode::data));
  EXPECT_TRUE(has(missing.err, "own-data: tokenizer.json of the tokenizer bpe:")) << missing.err;
  EXPECT_FALSE(fs::exists(scratch.at("runs/own-2"))) << "refused before the run has a folder";
  // The run has the dataset's file.
  scratch.write("own-data/tokenizer.json", right);
  scratch.write("runs/own/model/tokenizer.json", right + " ");
  const Ended resumed = run("train --resume runs/own --steps 3 --quiet");
  EXPECT_EQ(resumed.code, int(ExitCode::data));
  EXPECT_TRUE(has(resumed.err, "runs/own/model/tokenizer.json: it must be the tokenizer bpe:")) << resumed.err;
  scratch.write("runs/own/model/tokenizer.json", right);
  succeed("train --resume runs/own --steps 3 --quiet");
}

TEST_F(CommandLine, ComparesRecipes) {
  const Ended ended = run("compare tiny.toml --recipes current,block128 --quiet");
  EXPECT_TRUE(ended.code == int(ExitCode::done) || ended.code == int(ExitCode::gap)) << ended.err;
  for (const char* part : {"bf16", "current", "block128", "baseline", "report: runs/compare/report.html"})
    EXPECT_TRUE(has(ended.out, part)) << ended.out;
  expect_files("runs/compare",
               {"compare.json", "report.html", "bf16/run.json", "current/metrics.jsonl", "block128/weights/model.safetensors"});
  succeed("report runs/compare --output page.html");
}

TEST_F(CommandLine, WarnsOfOptionsWithoutEffectAndSaysWhy) {
  scratch.write("idle.toml", testing::tiny_config() + "[recipe]\nhistory = 16\n");
  const std::string all = succeed(
                              "train idle.toml --tokens 500 --set recipe.first=1 --set data.eval_fraction=0 --set train.eval_every=1 --set "
                              "optim.schedule.decay=0.1")
                              .err;
  for (const char* part : {"warning: idle.toml:16:1: `recipe.history` has no effect: no history is kept under bf16\n",
                           "warning: --set: `recipe.first` has no effect: nothing has 8 bits under bf16\n",
                           "warning: --tokens: `train.tokens` has no effect: train.steps is set",
                           "warning: --set: `train.eval_every` has no effect: nothing is held out",
                           "warning: --set: `optim.schedule.decay` has no effect: only optim.schedule.kind = \"wsd\" reads it\n"})
    EXPECT_TRUE(has(all, part)) << part << "\nin\n" << all;
  EXPECT_FALSE(has(succeed("plan idle.toml --fp8 delayed").err, "warning"));
  EXPECT_TRUE(has(succeed("plan idle.toml --fp8 current").err, "no history is kept under current"));
  EXPECT_TRUE(
      has(succeed("plan tiny.toml --fp8 current --set recipe.scale=f32").err, "no scale is of a row or of 128 values under current"));
  EXPECT_FALSE(has(succeed("plan tiny.toml --fp8 rowwise --set recipe.scale=f32").err, "warning"));
  EXPECT_FALSE(has(succeed("plan tiny.toml").err, "warning")) << "defaults are no mistake";
}

// The cells of the line that begins with `first`.
std::vector<std::string> cells(const std::string& text, const std::string& first) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::vector<std::string> words = testing::words_of(line);
    if (!words.empty() && words[0] == first) return words;
  }
  return {};
}

TEST_F(CommandLine, InspectsNumbers) {
  using Words = std::vector<std::string>;
  const auto row = [&](const std::string& number, const std::string& format) {
    return cells(succeed("inspect " + number + " --format " + format).out, format);
  };
  // 0.3 lies between 0.28125 and 0.3125, 1.25 x 2^-2, and 0.0125 of their distance of 0.03125 is 0.4.
  EXPECT_EQ(row("0.3", "e4m3"), (Words{"e4m3", "normal", "0", "0101", "010", "0x2a", "0.3125", "0.28125", "0.34375", "0.0125", "0.400"}));
  EXPECT_EQ(row("-0.3", "e5m2"), (Words{"e5m2", "normal", "1", "01101", "01", "0xb5", "-0.3125", "-0.375", "-0.25", "-0.0125", "-0.200"}));
  EXPECT_EQ(row("1000", "e4m3"),
            (Words{"e4m3", "largest:", "saturated", "0", "1111", "110", "0x7e", "448", "416", "-", "-552", "-17.250"}));
  EXPECT_EQ(row("0.3", "e8m0"), (Words{"e8m0", "rounded", "up", "01111110", "0x7e", "0.5", "0.25", "1", "0.2", "0.800"}));
  EXPECT_EQ(row("464", "e4m3")[1], "normal") << "half way to the next value, were there one, is rounding";
  EXPECT_EQ(row("464.1", "e4m3")[1], "largest:");
  EXPECT_EQ(row("65519", "fp16")[6], "65504");
  EXPECT_EQ(row("65520", "fp16")[1], "infinity:");
  EXPECT_EQ(row("nan", "e5m2")[1], "NaN");
  EXPECT_TRUE(has(succeed("inspect -1").out, "there is no sign"));
  const std::string all = succeed("inspect 0").out;
  for (const char* f : {"fp32", "bf16", "fp16", "e5m2", "e4m3"}) EXPECT_EQ(cells(all, f)[1], "zero") << all;
  EXPECT_EQ(cells(all, "e4m3")[7], "-0.001953125") << "below zero is the smallest subnormal, negative";
}

TEST_F(CommandLine, InspectsWhatItWrites) {
  succeed("train tiny.toml --fp8 --name fp8 --quiet --set checkpoint.every=1");
  const auto says = [&](const std::string& what, std::initializer_list<const char*> parts) {
    const std::string out = succeed("inspect " + what).out;
    for (const char* part : parts) EXPECT_TRUE(has(out, part)) << "inspect " << what << " lacks " << part << " in\n" << out;
  };
  says("data",
       {"byte, 257 ids, 2 bytes per token", "documents  4", "every checksum and id verified", "the most frequent:", "shard-00000-"});
  says("runs/fp8", {"recipe current, finished", "data.path = \"data\"", "step 2 of 2", "layers.0.mlp.down", "checkpoint of step",
                    "every checksum verified"});
  says("runs/fp8/checkpoints/step-000000002",
       {"step 2,", "state.safetensors", "XXH3", "verified", "data.next_sample", "0 values are not finite"});
  says("runs/fp8/weights", {"llama, 1 layers, width 64", "model.layers.0.mlp.down_proj.weight", "64 x 96"});
  says("runs/fp8/weights/model.safetensors", {"F32", "257 x 64"});
  for (const auto& entry : fs::directory_iterator(scratch.at("data")))
    if (entry.path().extension() == ".tok") says(entry.path().string(), {"from token 0", "every checksum and id verified"});

  scratch.write("characters.bin", std::string("\1\0\2\0\1\0", 6));
  says("characters.bin", {"tokens of  nanoGPT, characters.bin", "unknown, 3 ids, 2 bytes per token", "2 of 3 ids occur"});

  const std::string state = scratch.at("runs/fp8/checkpoints/step-000000001/state.safetensors");
  fs::resize_file(state, fs::file_size(state) - 1);
  const Ended ended = run("inspect runs/fp8");
  EXPECT_EQ(ended.code, int(ExitCode::data));
  EXPECT_TRUE(has(ended.out, "cut off") && has(ended.out, "every checksum verified")) << ended.out;
  EXPECT_TRUE(has(ended.err, "octet: damaged: ") && has(ended.err, "step-000000001")) << ended.err;
}

TEST_F(CommandLine, EveryCommandExplainsItselfByExamples) {
  EXPECT_TRUE(has(succeed("--help").out, "octet COMMAND --help"));
  for (const char* command : {"train", "compare", "tokenize", "tokenizer", "eval", "generate", "chat", "export", "report", "inspect",
                              "plan", "bench", "doctor"}) {
    const Ended ended = succeed(std::string(command) + " --help");
    EXPECT_TRUE(has(ended.out, std::string("Examples:\n  octet ") + command)) << ended.out;
    EXPECT_EQ(ended.err, "");
  }
}

}  // namespace
}  // namespace octet
