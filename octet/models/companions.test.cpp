#include "octet/models/companions.hpp"

#include <gtest/gtest.h>

#include <filesystem>

#include "octet/base/error.hpp"
#include "octet/json/value.hpp"
#include "octet/models/exported_config.hpp"
#include "octet/models/registry.hpp"
#include "tests/testing/scratch.hpp"

namespace octet::models {
namespace {

using testing::error_of, testing::has, testing::Scratch;

constexpr const char* llama_tiny = R"({"model_type": "llama", "hidden_size": 256, "num_hidden_layers": 6, "num_attention_heads": 4,
  "num_key_value_heads": 2, "intermediate_size": 1024, "vocab_size": 257, "max_position_embeddings": 1024, "rms_norm_eps": 1e-05,
  "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0}, "dtype": "bfloat16", "architectures": null, "of_others": [1, {}]})";

TEST(Companions, OnlyFilesOfTokenizersAndGenerationAreRead) {
  const Scratch scratch;
  for (const char* name : {"tokenizer.json", "chat_template.jinja", "vocab.json", "model.safetensors", "README.md"})
    scratch.write(name, name);
  const Companions found = read_companions(scratch.folder());
  ASSERT_EQ(found.files.size(), 3u);
  EXPECT_EQ(found.files[0].name, "chat_template.jinja");
  EXPECT_EQ(*found.find("vocab.json"), "vocab.json");
  EXPECT_EQ(found.find("README.md"), nullptr);
  EXPECT_TRUE(read_companions(scratch.at("nowhere")).empty());
}

TEST(Companions, FilesThatAreTooLargeOrLeadOutsideAreRefused) {
  const Scratch scratch, outside;
  scratch.write("tokenizer.json", "x");
  std::filesystem::resize_file(scratch.at("tokenizer.json"), (std::uintmax_t(64) << 20) + 1);
  EXPECT_TRUE(has(error_of<DataError>([&] { read_companions(scratch.folder()); }), "at most 67,108,864 bytes"));
  std::filesystem::remove(scratch.at("tokenizer.json"));
  outside.write("secret", "x");
  std::filesystem::create_symlink(outside.at("secret"), scratch.at("tokenizer.json"));
  EXPECT_TRUE(has(error_of<DataError>([&] { read_companions(scratch.folder()); }), "is a symbolic link out of the folder"));
}

TEST(Companions, AnExportsConfigIsTheOneThatCameInWithAnotherType) {
  const Companions in{.config = llama_tiny};
  json::Value wanted = json::parse({.text = llama_tiny});
  wanted.set("dtype", "float32").set("architectures", json::Array{"LlamaForCausalLM"});
  EXPECT_EQ(exported_config(model_size("llama-tiny"), DType::f32, in).dump(), wanted.dump());
  EXPECT_EQ(weights_dtype(in), DType::bf16);
  EXPECT_EQ(weights_dtype({}), DType::f32);
  EXPECT_EQ(weights_dtype({.config = R"({"torch_dtype": "float16"})"}), DType::f32);
  EXPECT_TRUE(has(error_of<ConfigError>([&] { exported_config(model_size("llama-small"), DType::f32, in); }), "describes another model"));
}

TEST(Companions, ANewModelGetsTheSpecialTokensOfItsTokenizer) {
  const Companions with{.config = "",
                        .files = {{"tokenizer.json", R"({"added_tokens": [{"id": 7, "content": "<s>"}, {"id": 9, "content": "</s>"}]})"},
                                  {"tokenizer_config.json", R"({"bos_token": {"content": "<s>"}, "eos_token": "</s>"})"}}};
  const json::Value config = exported_config(model_size("llama-tiny"), DType::bf16, with);
  EXPECT_EQ(*config.find("bos_token_id")->integer(), 7);
  EXPECT_EQ(*config.find("eos_token_id")->integer(), 9);
  EXPECT_EQ(*config.find("torch_dtype")->text(), "bfloat16");
  EXPECT_TRUE(exported_config(model_size("llama-tiny"), DType::f32, {}).find("eos_token_id")->is_null());
}

TEST(Companions, DropoutIsNamedWhereItIsAboveZero) {
  EXPECT_EQ(dropout_of({.config = R"({"attn_pdrop": 0.1, "embd_pdrop": 0.0, "resid_pdrop": 0.25})"}),
            "attn_pdrop = 0.1, resid_pdrop = 0.25");
  EXPECT_EQ(dropout_of({}), "");
}

}  // namespace
}  // namespace octet::models
