#include "octet/train/run/config/model_config.hpp"

#include <gtest/gtest.h>

#include "octet/base/error.hpp"
#include "octet/models/registry.hpp"
#include "tests/testing/scratch.hpp"

namespace octet::train {
namespace {
using octet::testing::error_of, octet::testing::has;

TEST(ModelConfig, WithoutKeysItIsTheSmallestLlama) {
  EXPECT_EQ(ModelConfig().shape(), models::model_size("llama-tiny"));
  EXPECT_EQ(ModelConfig().name(), "llama-tiny");
  ModelConfig c;
  c.family = "qwen3";
  EXPECT_EQ(c.shape(), models::model_size("qwen3-tiny"));
}

TEST(ModelConfig, KeysMakeTinyLlamaAndLlama31FromOtherSizes) {
  ModelConfig tiny;
  tiny.size = "llama-2-7b", tiny.width = 2048, tiny.layers = 22, tiny.heads = 32, tiny.kv_heads = 4, tiny.hidden = 5632,
  tiny.context = 2048;
  EXPECT_EQ(tiny.shape(), models::model_size("tinyllama-1.1b"));
  ModelConfig stretched;
  stretched.size = "llama-3-8b", stretched.rope_scaling = "llama3", stretched.context = 131072;
  EXPECT_EQ(stretched.shape(), models::model_size("llama-3.1-8b"));
  stretched.rope_factor = 32;
  EXPECT_EQ(stretched.shape().rope_scaling->factor, 32);
  ModelConfig smol;
  smol.width = 576, smol.layers = 30, smol.heads = 9, smol.kv_heads = 3, smol.hidden = 1536, smol.vocabulary = 49152, smol.context = 8192;
  smol.rope_theta = 100000, smol.tied = "yes", smol.norm_eps = 1e-5, smol.head_width = 64;
  EXPECT_EQ(smol.shape(), models::model_size("smollm2-135m"));
}

TEST(ModelConfig, AHeadsWidthFollowsWidthAndHeadsUnlessItIsSet) {
  ModelConfig c;
  c.family = "qwen3", c.width = 512;
  EXPECT_EQ(c.shape().head_dim, 128);
  c.head_width = 96;
  EXPECT_EQ(c.shape().head_dim, 96);
  c.head_width = 0, c.width = 510;
  EXPECT_TRUE(has(error_of<ConfigError>([&] { c.shape(); }), "model.width = 510 must be a multiple of model.heads = 4"));
}

TEST(ModelConfig, KeysThatHaveNoPlaceInTheModelAreRefused) {
  ModelConfig c;
  c.family = "gpt2", c.rope_theta = 10000;
  EXPECT_TRUE(has(error_of<ConfigError>([&] { c.shape(); }), "gpt2 have no rotary positions"));
  c = {}, c.rope_factor = 8;
  EXPECT_TRUE(has(error_of<ConfigError>([&] { c.shape(); }), "set model.rope_scaling = \"llama3\" too"));
  c = {}, c.rope_scaling = "llama3", c.rope_low_frequency = 5;
  EXPECT_TRUE(has(error_of<ConfigError>([&] { c.shape(); }), "model.rope_high_frequency = 4 must be above model.rope_low_frequency = 5"));
  c = {}, c.family = "qwen2", c.size = "llama-tiny";
  EXPECT_TRUE(has(error_of<ConfigError>([&] { c.shape(); }), "is of the family llama"));
  c = {}, c.family = "bloom";
  EXPECT_TRUE(has(error_of<ConfigError>([&] { c.shape(); }), "model.family = \"bloom\" does not exist"));
}

TEST(ModelConfig, IsNamedAfterItsFolder) {
  ModelConfig c;
  for (const char* init : {"models/Qwen3-0.6B", "models/Qwen3-0.6B/", "models/Qwen3-0.6B/."}) {
    c.init = init;
    EXPECT_EQ(c.name(), "Qwen3-0.6B") << init;
  }
}

}  // namespace
}  // namespace octet::train
