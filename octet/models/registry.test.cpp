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
  return models::make_llama_like(s, false, options, precision);
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
  EXPECT_THROW(require_hugging_face_format(own_shape()), ConfigError);
  EXPECT_NO_THROW(require_hugging_face_format(model_size("llama-tiny")));
  Stream stream(Device::cpu);
  const nn::Parameters parameters(stream, *model, false);
  const testing::Scratch scratch;
  EXPECT_TRUE(testing::has(testing::error_of<ConfigError>([&] { save_hugging_face(scratch.at("out"), own_shape(), parameters); }),
                           "models of family own have no Hugging Face format"));
  EXPECT_EQ(scratch.entries(), 0u);
  scratch.write("folder/config.json", "{\"model_type\": \"own\"}");
  EXPECT_TRUE(testing::has(testing::error_of<DataError>([&] { (void)read_hugging_face_shape(scratch.at("folder")); }),
                           "one of llama, qwen2, gpt2"));
}

}  // namespace
}  // namespace octet::models
