#include "octet/models/registry.hpp"

#include <gtest/gtest.h>

#include "octet/models/hugging_face.hpp"
#include "octet/models/llama/llama.hpp"
#include "tests/testing/scratch.hpp"

namespace octet::models {
namespace {

ModelShape own_shape() {
  return {.family = "own",
          .width = 32,
          .layers = 1,
          .heads = 2,
          .kv_heads = 2,
          .head_dim = 16,
          .hidden = 32,
          .vocabulary = 16,
          .max_sequence = 8};
}
std::vector<ModelSize> own_sizes() { return {{"own-tiny", own_shape()}}; }
std::unique_ptr<Model> make_own(const ModelShape& s, const ModelOptions& options, scaling::Precision& precision) {
  return models::make_llama_like(s, {}, options, precision);
}

// Parameters as transformers counts them in the published checkpoints, of DeepSeek's in models of their shapes: biases of routers are none.
TEST(Registry, NamedSizesHaveThePublishedNumbersOfParameters) {
  const std::pair<const char*, std::int64_t> published[] = {
      {"llama-2-7b", 6738415616},      {"llama-2-13b", 13015864320},      {"llama-3-8b", 8030261248},
      {"llama-3.1-8b", 8030261248},    {"llama-3.2-1b", 1235814400},      {"llama-3.2-3b", 3212749824},
      {"smollm2-135m", 134515008},     {"smollm2-360m", 361821120},       {"smollm2-1.7b", 1711376384},
      {"tinyllama-1.1b", 1100048384},  {"qwen2.5-0.5b", 494032768},       {"qwen2.5-1.5b", 1543714304},
      {"qwen2.5-3b", 3085938688},      {"qwen2.5-7b", 7615616512},        {"qwen2.5-14b", 14770033664},
      {"qwen2.5-32b", 32763876352},    {"qwen3-0.6b", 596049920},         {"qwen3-1.7b", 1720574976},
      {"qwen3-4b", 4022468096},        {"qwen3-8b", 8190735360},          {"qwen3-14b", 14768307200},
      {"qwen3-32b", 32762123264},      {"gpt2-124m", 124439808},          {"gpt2-355m", 354823168},
      {"gpt2-774m", 774030080},        {"gpt2-1.5b", 1557611200},         {"olmoe-1b-7b", 6919161856},
      {"qwen3-30b-a3b", 30532122624},  {"mixtral-8x7b", 46702792704},     {"mistral-7b-v0.1", 7241732096},
      {"mistral-7b-v0.3", 7248023552}, {"mistral-nemo-12b", 12247782400}, {"smollm3-3b", 3075098624},
      {"granite-3.1-2b", 2533531648},  {"granite-3.1-8b", 8170848256},    {"olmo2-1b", 1484916736},
      {"olmo2-7b", 7298617344},        {"olmo2-13b", 13716198400},        {"olmo2-32b", 32234279936},
      {"phi-3-mini-4k", 3821079552},   {"phi-3-medium-4k", 13960238080},  {"gemma3-270m", 268098176},
      {"gemma3-1b", 999885952},        {"deepseek-v2-lite", 15706484224}, {"moonlight-16b-a3b", 15960108544},
      {"deepseek-v3", 671026404352}};
  for (const auto& [name, parameters] : published) {
    scaling::Precision precision({});
    const ModelShape& shape = model_size(name);
    const auto model = make_model(shape, {}, precision);
    Stream stream(Device::null);
    EXPECT_EQ(nn::Parameters(stream, *model, false).count() - shape.padding(), parameters) << name;
  }
}

// One test: the table is the program's.
TEST(Registry, ARegisteredFamilyIsFoundByItsNameAndSizes) {
  scaling::Precision precision({});
  EXPECT_THROW((void)make_model(own_shape(), {}, precision), ConfigError);
  EXPECT_THROW((void)model_size("own-tiny"), ConfigError);
  register_model_family({.name = "own", .sizes = own_sizes, .make = make_own});
  EXPECT_EQ(model_families().back().name, "own");
  EXPECT_EQ(model_size("own-tiny"), own_shape());
  const auto model = make_model(own_shape(), {}, precision);
  EXPECT_EQ(model->shape(), own_shape());
  EXPECT_TRUE(testing::has(testing::error_of<ConfigError>([] { (void)model_size("owm-tiny"); }), "did you mean \"own-tiny\"?"));

  EXPECT_THROW(register_model_family({.name = "own", .make = make_own}), ContractError);
  EXPECT_THROW(register_model_family({.name = "other", .sizes = own_sizes, .make = make_own}), ContractError) << "its size is taken";
  EXPECT_THROW(register_model_family({.name = "other"}), ContractError);
  EXPECT_EQ(model_families().back().name, "own");

  // It was registered without a Hugging Face format.
  EXPECT_THROW(require_exportable(own_shape()), ConfigError);
  EXPECT_NO_THROW(require_exportable(model_size("llama-tiny")));
  Stream stream(Device::cpu);
  const nn::Parameters parameters(stream, *model, false);
  const testing::Scratch scratch;
  EXPECT_TRUE(testing::has(testing::error_of<ConfigError>([&] { save_hugging_face(scratch.at("out"), own_shape(), parameters); }),
                           "models of family own have no Hugging Face format"));
  EXPECT_EQ(scratch.entries(), 0u);
  scratch.write("folder/config.json", "{\"model_type\": \"own\"}");
  EXPECT_TRUE(testing::has(testing::error_of<DataError>([&] { (void)read_hugging_face_shape(scratch.at("folder")); }),
                           "it supports llama, qwen2, qwen3, gpt2"));
}

}  // namespace
}  // namespace octet::models
