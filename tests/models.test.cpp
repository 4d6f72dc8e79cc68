#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "octet/base/error.hpp"
#include "octet/io/safetensors_file.hpp"
#include "octet/io/safetensors_writer.hpp"
#include "octet/io/tensor_folder.hpp"
#include "octet/json/value.hpp"
#include "tests/testing/octet.hpp"

// A Hugging Face folder on its way through the program: its config.json decides the model, and what it came with comes out again.

namespace octet {
namespace {
namespace fs = std::filesystem;
using testing::Ended, testing::has, testing::Scratch;

constexpr const char* train = "train --data data --quiet --set device=cpu --set data.sequence_length=32 --set train.batch=2 ";

/// A folder of a Qwen3 of keys that no named size has, in BF16, with files of a tokenizer: as if fetched.
class FetchedModel : public ::testing::Test {
 protected:
  void SetUp() override {
    testing::write_dataset(scratch);
    succeed(std::string(train) +
            "--steps 1 --name made --set model.family=qwen3 --set model.layers=2 --set model.width=48 --set model.heads=3 --set "
            "model.kv_heads=1 "
            "--set model.head_width=24 --set model.hidden=80 --set model.vocabulary=259 --set model.context=77 --set model.rope_theta=5000 "
            "--set model.norm_eps=1e-4 --set model.tied=no");
    succeed("export runs/made --output model --dtype bf16");
    fs::remove_all(scratch.at("runs"));
    json::Value config = json::load(scratch.at("model/config.json"));
    config.set("eos_token_id", json::Array{256, 258}).set("bos_token_id", 257).set("a_key_of_others", json::Object());
    scratch.write("model/config.json", config.dump());
    for (const auto& [name, text] : files) scratch.write("model/" + name, text);
    succeed(
        "tokenizer train --input text/*.txt --vocabulary 259 --least-count 1 --special <|end|> --special <|begin|> --output "
        "trained/tokenizer.json");
    files["tokenizer.json"] = testing::bytes_of(scratch.at("trained/tokenizer.json"));
    scratch.write("model/tokenizer.json", files["tokenizer.json"]);
    succeed("tokenize --input text/*.txt --model model --output data --force");
  }

  Ended octet(const std::string& line) const { return testing::run_octet(line, scratch.folder()); }
  Ended succeed(const std::string& line) const {
    Ended ended = octet(line);
    EXPECT_EQ(ended.code, 0) << "octet " << line << "\n" << ended.err;
    return ended;
  }
  /// The folder has what the model came with, and weights of that type.
  void expect_companions(const std::string& folder, io::StoredDType dtype) const {
    for (const auto& [name, text] : files) EXPECT_EQ(testing::bytes_of(scratch.at(folder + "/" + name)), text) << folder << "/" << name;
    json::Value before = json::load(scratch.at("model/config.json")), after = json::load(scratch.at(folder + "/config.json"));
    EXPECT_EQ(*after.find("torch_dtype")->text(), dtype == io::StoredDType::bf16 ? "bfloat16" : "float32");
    before.set("torch_dtype", {}), after.set("torch_dtype", {});
    EXPECT_EQ(after.dump(), before.dump());
    const io::TensorFolder weights = io::TensorFolder::open(scratch.at(folder));
    for (const auto name : weights.names()) EXPECT_EQ(weights.tensor(name).dtype, dtype) << name;
  }

  std::map<std::string, std::string> files{{"generation_config.json", "{\"eos_token_id\": [256, 258]}"},
                                           {"tokenizer_config.json", "{\"eos_token\": \"<|end|>\"}"},
                                           {"merges.txt", "a b\n"},
                                           {"chat_template.jinja", "{{ messages }}"}};
  Scratch scratch;
};

TEST_F(FetchedModel, ItsConfigDecidesTheShapeInTrainingPlansAndComparisons) {
  EXPECT_TRUE(has(succeed("plan --set model.init=model --set data.sequence_length=32 --steps 1").out, "model    model, "))
      << "named by the folder";
  succeed(std::string(train) + "--steps 2 --set model.init=model");
  EXPECT_TRUE(has(testing::bytes_of(scratch.at("runs/bf16/run.json")), "\"width\": 48"))
      << testing::bytes_of(scratch.at("runs/bf16/run.json"));
  const Ended compared = octet(
      "compare --data data --quiet --recipes current --twins 0 --steps 1 --set device=cpu --set data.sequence_length=32 --set "
      "model.init=model");
  EXPECT_TRUE(compared.code == int(ExitCode::done) || compared.code == int(ExitCode::gap)) << compared.err;
  expect_companions("runs/compare/current/weights", io::StoredDType::bf16);
}

TEST_F(FetchedModel, KeysThatContradictItAreRefusedBeforeARunFolderIsMade) {
  for (const char* key : {"layers=3", "width=96", "head_width=16", "context=78", "norm_eps=1e-5", "rope_theta=1e4", "tied=yes",
                          "family=llama", "rope_scaling=llama3", "size=llama-tiny"}) {
    const Ended ended = octet(std::string(train) + "--steps 1 --set model.init=model --set model." + key);
    EXPECT_EQ(ended.code, int(ExitCode::usage)) << key;
    EXPECT_TRUE(has(ended.err, "model/config.json decides the model, and contradicts model.")) << key << ": " << ended.err;
  }
  fs::remove(scratch.at("model/model.safetensors"));
  EXPECT_EQ(octet(std::string(train) + "--steps 1 --set model.init=model").code, int(ExitCode::data));
  EXPECT_FALSE(fs::exists(scratch.at("runs")));
  // Keys that say the same are none.
  succeed(
      "plan --steps 1 --set data.sequence_length=32 --set model.init=model --set model.width=48 --set model.heads=3 --set model.tied=no");
}

TEST_F(FetchedModel, WhatItCameWithComesOutOfTheRunItsCheckpointsAndExports) {
  succeed(std::string(train) + "--steps 4 --set model.init=model --set checkpoint.every=2");
  fs::rename(scratch.at("model"), scratch.at("away"));
  succeed("export runs/bf16 --step 2 --output step2");
  succeed("export runs/bf16/checkpoints/step-000000004 --output step4 --dtype f32");
  succeed("train --resume runs/bf16 --steps 5 --quiet");
  fs::rename(scratch.at("away"), scratch.at("model"));
  expect_companions("step2", io::StoredDType::bf16);
  expect_companions("step4", io::StoredDType::f32);
  expect_companions("runs/bf16/weights", io::StoredDType::bf16);
  const std::string eval = " --data data --sequence 32 --held-out 0.25 --device cpu --recipe fp32";
  EXPECT_EQ(succeed("eval runs/bf16 --step 4" + eval).out, succeed("eval step4" + eval).out);
  EXPECT_EQ(succeed("eval runs/bf16/checkpoints/step-000000004/" + eval).out, succeed("eval step4" + eval).out);
  EXPECT_NE(succeed("eval runs/bf16" + eval).out, succeed("eval step4" + eval).out) << "the newest is that of step 5";
  EXPECT_TRUE(has(octet("eval runs/bf16 --step 3" + eval).err, "no checkpoint of that step; there are 2, 4, 5"))
      << octet("eval runs/bf16 --step 3" + eval).err;
  EXPECT_TRUE(has(octet("eval step4 --step 3" + eval).err, "is no run's folder"));
}

TEST_F(FetchedModel, AnExportReplacesAModelOnlyWhenForcedAndNeverTheOneThatItBeganFrom) {
  succeed(std::string(train) + "--steps 2 --set model.init=model --set checkpoint.every=2");
  const auto weights = [&](const std::string& folder) { return testing::bytes_of(scratch.at(folder + "/model.safetensors")); };
  const std::string base = weights("model");
  for (const char* line : {"runs/bf16 --output model --force", "runs/bf16/weights --output model --force",
                           "runs/bf16/checkpoints/step-000000002 --output model/ --force", "runs/bf16 --output runs/bf16/model --force"}) {
    const Ended ended = octet(std::string("export ") + line);
    EXPECT_EQ(ended.code, int(ExitCode::usage)) << line;
    EXPECT_TRUE(has(ended.err, "which is never replaced")) << line << ": " << ended.err;
  }
  EXPECT_EQ(weights("model"), base);
  fs::create_directory(scratch.at("other"));
  succeed("export model --output other");  // an empty folder
  EXPECT_EQ(octet("export runs/bf16 --output other").code, int(ExitCode::usage));
  EXPECT_EQ(weights("other"), base);
  succeed("export runs/bf16 --output other --force");
  EXPECT_NE(weights("other"), base);
}

TEST_F(FetchedModel, CodesThatWereTrainedComeOutAndAreReadAgain) {
  succeed(std::string(train) +
          "--steps 2 --set model.init=model --set checkpoint.every=2 --set recipe.name=block128 --set recipe.keep_bf16=layers.0.mlp.down");
  const std::string out = succeed("export runs/block128 --output codes --dtype fp8-block128").out;
  EXPECT_TRUE(has(out, "layers in bf16, as in the run: ")) << out;
  EXPECT_TRUE(has(out, "have rows of several tensors: ") && has(out, "other codes are those that the run trained with")) << out;
  EXPECT_TRUE(has(testing::bytes_of(scratch.at("codes/config.json")), "\"model.layers.0.mlp.down_proj\""));
  EXPECT_TRUE(has(succeed("export model --output new --dtype fp8-channel").out, "the codes are new")) << "of a folder";
  const std::string eval = " --data data --sequence 32 --held-out 0.25 --device cpu --recipe fp32";
  succeed("export codes --output values --dtype f32");
  EXPECT_EQ(succeed("eval codes" + eval).out, succeed("eval values" + eval).out);
  succeed("generate codes --prompt count --tokens 2");
  succeed("plan --steps 1 --set data.sequence_length=32 --set model.init=codes");
  succeed(std::string(train) + "--steps 1 --set model.init=codes --name again");
  EXPECT_FALSE(has(testing::bytes_of(scratch.at("runs/again/weights/config.json")), "quantization_config"));
}

// Scales of the run's last step, and of calibration, take the place of those of the data.
TEST_F(FetchedModel, StoredScalesOfActivationsAreEvaluated) {
  succeed(std::string(train) + "--steps 2 --set model.init=model --set checkpoint.every=2 --fp8 delayed --name delayed");
  const std::string text = " --data data --sequence 32 --held-out 0.25", eval = text + " --device cpu";
  EXPECT_TRUE(has(succeed("export runs/delayed --output run --dtype fp8-tensor").out, "activation scales are static"));
  EXPECT_TRUE(
      has(succeed("export model --output calibrated --dtype fp8-tensor --calibration 2" + text).out, "activation scales are static"));
  for (const char* folder : {"runs/delayed", "run", "calibrated"})
    EXPECT_TRUE(has(succeed("eval " + std::string(folder) + eval + " --frozen").out, "stored scales: loss 5.")) << folder;
  EXPECT_TRUE(has(octet("eval model --frozen" + eval).err, "has no FP8 codes"));
  EXPECT_TRUE(has(octet("eval run --frozen --recipe current" + eval).err, "--recipe asks for another"));
  succeed(std::string(train) + "--steps 1 --set model.init=model --set checkpoint.every=1 --fp8 current --name current");
  EXPECT_TRUE(has(octet("eval runs/current --frozen" + eval).err, "come from the data of each step"));
  EXPECT_TRUE(has(octet("export model --output no --dtype fp8-channel --calibration 2" + text).err, "fp8-channel has dynamic scales"));
}

// The router has values alone; each expert has a scale of its weights.
TEST_F(FetchedModel, StoredScalesOfExpertsAreEvaluated) {
  succeed(std::string(train) +
          "--steps 2 --set model.size=moe-tiny --set model.vocabulary=259 --set model.layers=1 --set model.width=64 --set model.experts=2 "
          "--set model.experts_per_token=1 --set model.expert_hidden=32 --set checkpoint.every=2 --fp8 delayed --name experts");
  const std::string text = " --data data --sequence 32 --held-out 0.25";
  succeed("export runs/experts --output experts --dtype fp8-tensor");
  succeed("export runs/experts --output calibrated --dtype fp8-tensor --calibration 2" + text);
  for (const char* folder : {"runs/experts", "experts", "calibrated"})
    EXPECT_TRUE(has(succeed("eval " + std::string(folder) + text + " --device cpu --frozen").out, "4 of 5 layers in 8 bits")) << folder;
}

TEST_F(FetchedModel, AFileForLlamaCppIsWrittenWhereNoneIs) {
  EXPECT_TRUE(has(succeed("export model --output m.gguf --dtype gguf-q8_0").out, " parameters as gguf-q8_0, of model"));
  EXPECT_TRUE(testing::bytes_of(scratch.at("m.gguf")).starts_with("GGUF"));
  EXPECT_TRUE(has(octet("export model --output m.gguf --dtype gguf-f16").err, "is there already; give --force"));
  succeed("export model --output m.gguf --dtype gguf-f16 --force");
  EXPECT_TRUE(has(octet("export model --output data --dtype gguf-f16").err, "is a folder, and gguf-f16 is one file"));
  fs::remove(scratch.at("model/tokenizer.json"));
  EXPECT_TRUE(has(octet("export model --output other.gguf --dtype gguf-f16").err, "has no tokenizer.json"));
}

TEST_F(FetchedModel, LogitsOfNamedTokensGoToAFile) {
  const std::int32_t ids[] = {1, 2, 258, 4, 5, 6};
  io::SafetensorsWriter writer(scratch.at("ids.safetensors"), {{"ids", io::StoredDType::i32, {2, 3}}});
  writer.append("ids", std::as_bytes(std::span(ids)));
  writer.commit();
  succeed("eval model --recipe fp32 --device cpu --logits logits.safetensors --ids ids.safetensors");
  const auto file = io::SafetensorsFile::open(scratch.at("logits.safetensors"));
  const io::TensorView logits = *file.find("logits");
  EXPECT_EQ(std::vector(logits.shape.begin(), logits.shape.end()), (std::vector<std::int64_t>{2, 3, 259}));
  // A causal model: a row's logits do not depend on the other row, nor on later tokens.
  const std::vector<float> both = to_f32(logits);
  const std::int64_t first[] = {4, 5};
  io::SafetensorsWriter alone(scratch.at("ids.safetensors"), {{"ids", io::StoredDType::i64, {1, 2}}});
  alone.append("ids", std::as_bytes(std::span(first)));
  alone.commit();
  succeed("eval model --recipe fp32 --device cpu --logits alone.safetensors --ids ids.safetensors");
  const std::vector<float> one = to_f32(*io::SafetensorsFile::open(scratch.at("alone.safetensors")).find("logits"));
  ASSERT_EQ(one.size(), 2u * 259);
  for (std::size_t i = 0; i < one.size(); ++i) ASSERT_NEAR(one[i], both[3 * 259 + i], 1e-5) << i;
  EXPECT_TRUE(has(octet("eval model --ids ids.safetensors").err, "give --logits FILE too"));
  EXPECT_TRUE(has(octet("eval model").err, "--data is missing"));
}

TEST_F(FetchedModel, DropoutOfItsConfigIsSaidToBeLeftOut) {
  json::Value config = json::load(scratch.at("model/config.json"));
  scratch.write("model/config.json", config.set("attention_dropout", 0.1).dump());
  EXPECT_TRUE(
      has(octet(std::string(train) + "--steps 1 --set model.init=model").err, "attention_dropout = 0.1: Octet trains without dropout"));
}

}  // namespace
}  // namespace octet
