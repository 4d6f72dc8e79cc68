#include <gtest/gtest.h>

#include "octet/base/file.hpp"

#include "octet/base/error.hpp"
#include "octet/json/value.hpp"
#include "octet/models/hugging_face.hpp"
#include "octet/models/registry.hpp"
#include "tests/testing/scratch.hpp"

namespace octet::models {
namespace {

using testing::error_of;
using testing::has;

/// The shape that a config.json of this text describes.
ModelShape shape_of(const std::string& text) {
  const testing::Scratch scratch;
  write_file(scratch.at("config.json"), text);
  return read_hugging_face_shape(scratch.folder());
}
ModelShape written_shape(const json::Value& config) { return shape_of(config.dump()); }

void expect_same(const ModelShape& a, const ModelShape& b) {
  EXPECT_EQ(a.family, b.family);
  EXPECT_EQ(std::tie(a.width, a.layers, a.heads, a.kv_heads, a.head_dim, a.hidden),
            std::tie(b.width, b.layers, b.heads, b.kv_heads, b.head_dim, b.hidden));
  EXPECT_EQ(std::tie(a.vocabulary, a.max_sequence, a.norm_eps, a.rope_theta, a.tied),
            std::tie(b.vocabulary, b.max_sequence, b.norm_eps, b.rope_theta, b.tied));
  ASSERT_EQ(a.rope_scaling.has_value(), b.rope_scaling.has_value());
  if (!a.rope_scaling) return;
  EXPECT_EQ(*a.rope_scaling, *b.rope_scaling);
}

// Published config.json files, with the keys that they have.
constexpr const char* llama_3_2_1b = R"({"architectures": ["LlamaForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
  "bos_token_id": 128000, "eos_token_id": 128001, "head_dim": 64, "hidden_act": "silu", "hidden_size": 2048, "initializer_range": 0.02,
  "intermediate_size": 8192, "max_position_embeddings": 131072, "mlp_bias": false, "model_type": "llama", "num_attention_heads": 32,
  "num_hidden_layers": 16, "num_key_value_heads": 8, "pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_scaling": {"factor": 32.0,
  "high_freq_factor": 4.0, "low_freq_factor": 1.0, "original_max_position_embeddings": 8192, "rope_type": "llama3"}, "rope_theta": 500000.0,
  "tie_word_embeddings": true, "torch_dtype": "bfloat16", "transformers_version": "4.45.0.dev0", "use_cache": true, "vocab_size": 128256})";
constexpr const char* llama_3_8b = R"({"architectures": ["LlamaForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
  "bos_token_id": 128000, "eos_token_id": 128001, "hidden_act": "silu", "hidden_size": 4096, "initializer_range": 0.02,
  "intermediate_size": 14336, "max_position_embeddings": 8192, "model_type": "llama", "num_attention_heads": 32, "num_hidden_layers": 32,
  "num_key_value_heads": 8, "pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_scaling": null, "rope_theta": 500000.0,
  "tie_word_embeddings": false, "torch_dtype": "bfloat16", "use_cache": true, "vocab_size": 128256})";
constexpr const char* qwen_2_5_05b = R"({"architectures": ["Qwen2ForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 151643,
  "eos_token_id": 151643, "hidden_act": "silu", "hidden_size": 896, "initializer_range": 0.02, "intermediate_size": 4864,
  "max_position_embeddings": 32768, "max_window_layers": 24, "model_type": "qwen2", "num_attention_heads": 14, "num_hidden_layers": 24,
  "num_key_value_heads": 2, "rms_norm_eps": 1e-06, "rope_theta": 1000000.0, "sliding_window": 32768, "tie_word_embeddings": true,
  "torch_dtype": "bfloat16", "use_cache": true, "use_mrope": false, "use_sliding_window": false, "vocab_size": 151936})";
constexpr const char* qwen_3_06b = R"({"architectures": ["Qwen3ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
  "bos_token_id": 151643, "eos_token_id": 151645, "head_dim": 128, "hidden_act": "silu", "hidden_size": 1024, "initializer_range": 0.02,
  "intermediate_size": 3072, "max_position_embeddings": 40960, "max_window_layers": 28, "model_type": "qwen3", "num_attention_heads": 16,
  "num_hidden_layers": 28, "num_key_value_heads": 8, "rms_norm_eps": 1e-06, "rope_scaling": null, "rope_theta": 1000000,
  "sliding_window": null, "tie_word_embeddings": true, "torch_dtype": "bfloat16", "use_cache": true, "use_sliding_window": false,
  "vocab_size": 151936})";
constexpr const char* smollm2_135m = R"({"architectures": ["LlamaForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
  "bos_token_id": 0, "eos_token_id": 0, "hidden_act": "silu", "hidden_size": 576, "initializer_range": 0.041666666666666664,
  "intermediate_size": 1536, "is_llama_config": true, "max_position_embeddings": 8192, "model_type": "llama", "num_attention_heads": 9,
  "num_hidden_layers": 30, "num_key_value_heads": 3, "pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_interleaved": false,
  "rope_scaling": null, "rope_theta": 100000, "tie_word_embeddings": true, "torch_dtype": "bfloat16", "use_cache": true,
  "vocab_size": 49152})";
constexpr const char* gpt2_124m = R"({"activation_function": "gelu_new", "architectures": ["GPT2LMHeadModel"], "attn_pdrop": 0.1,
  "bos_token_id": 50256, "embd_pdrop": 0.1, "eos_token_id": 50256, "initializer_range": 0.02, "layer_norm_epsilon": 1e-05,
  "model_type": "gpt2", "n_ctx": 1024, "n_embd": 768, "n_head": 12, "n_layer": 12, "n_positions": 1024, "resid_pdrop": 0.1,
  "summary_activation": null, "summary_first_dropout": 0.1, "summary_proj_to_labels": true, "summary_type": "cls_index",
  "summary_use_proj": true, "task_specific_params": {"text-generation": {"do_sample": true, "max_length": 50}}, "vocab_size": 50257})";

TEST(HuggingFaceConfig, PublishedFilesDescribeOurNamedSizes) {
  expect_same(shape_of(llama_3_2_1b), model_size("llama-3.2-1b"));
  expect_same(shape_of(llama_3_8b), model_size("llama-3-8b"));
  expect_same(shape_of(qwen_2_5_05b), model_size("qwen2.5-0.5b"));
  expect_same(shape_of(qwen_3_06b), model_size("qwen3-0.6b"));
  expect_same(shape_of(smollm2_135m), model_size("smollm2-135m"));
  expect_same(shape_of(gpt2_124m), model_size("gpt2-124m"));
}

TEST(HuggingFaceConfig, EveryNamedSizeSurvivesConfigJson) {
  for (const ModelFamily& family : model_families())
    for (const ModelSize& size : family.sizes()) {
      if (!family.hugging_face) continue;
      SCOPED_TRACE(size.name);
      json::Value config = json::Object();
      config.set("model_type", family.name);
      family.hugging_face.write(size.shape, config);
      expect_same(written_shape(config), size.shape);
    }
}

TEST(HuggingFaceConfig, BothWaysToWriteTheRotationAreRead) {
  json::Value config = json::parse({.text = llama_3_8b});
  config.set("rope_theta", {}).set("rope_parameters", json::Value(json::Object()).set("rope_type", "default").set("rope_theta", 250000.0));
  EXPECT_EQ(written_shape(config).rope_theta, 250000);
  EXPECT_FALSE(written_shape(config).rope_scaling);
  config.set("rope_scaling", json::Value(json::Object())
                                 .set("type", "llama3")
                                 .set("factor", 8)
                                 .set("low_freq_factor", 1)
                                 .set("high_freq_factor", 4)
                                 .set("original_max_position_embeddings", 8192));
  ASSERT_TRUE(written_shape(config).rope_scaling);
  EXPECT_EQ(written_shape(config).rope_scaling->factor, 8);
}

// allenai/OLMoE-1B-7B-0924, without keys that do not decide the shape.
const char* const olmoe_1b_7b = R"({"architectures": ["OlmoeForCausalLM"], "attention_bias": false, "clip_qkv": null, "hidden_act": "silu",
  "hidden_size": 2048, "intermediate_size": 1024, "max_position_embeddings": 4096, "model_type": "olmoe", "norm_topk_prob": false,
  "num_attention_heads": 16, "num_experts": 64, "num_experts_per_tok": 8, "num_hidden_layers": 16, "num_key_value_heads": 16,
  "output_router_logits": false, "rms_norm_eps": 1e-05, "rope_scaling": null, "rope_theta": 10000.0, "router_aux_loss_coef": 0.01,
  "tie_word_embeddings": false, "vocab_size": 50304})";
// Qwen/Qwen3-30B-A3B, the same.
const char* const qwen_3_30b_a3b = R"({"architectures": ["Qwen3MoeForCausalLM"], "attention_bias": false, "decoder_sparse_step": 1,
  "head_dim": 128, "hidden_act": "silu", "hidden_size": 2048, "intermediate_size": 6144, "max_position_embeddings": 40960,
  "max_window_layers": 48, "mlp_only_layers": [], "model_type": "qwen3_moe", "moe_intermediate_size": 768, "norm_topk_prob": true,
  "num_attention_heads": 32, "num_experts": 128, "num_experts_per_tok": 8, "num_hidden_layers": 48, "num_key_value_heads": 4,
  "rms_norm_eps": 1e-06, "rope_scaling": null, "rope_theta": 1000000.0, "router_aux_loss_coef": 0.001, "sliding_window": null,
  "tie_word_embeddings": false, "use_sliding_window": false, "vocab_size": 151936})";
// mistralai/Mixtral-8x7B-v0.1, the same.
const char* const mixtral_8x7b = R"({"architectures": ["MixtralForCausalLM"], "hidden_act": "silu", "hidden_size": 4096,
  "intermediate_size": 14336, "max_position_embeddings": 32768, "model_type": "mixtral", "num_attention_heads": 32,
  "num_experts_per_tok": 2, "num_hidden_layers": 32, "num_key_value_heads": 8, "num_local_experts": 8, "output_router_logits": false,
  "rms_norm_eps": 1e-05, "rope_theta": 1000000.0, "router_aux_loss_coef": 0.02, "sliding_window": null, "tie_word_embeddings": false,
  "vocab_size": 32000})";

TEST(HuggingFaceConfig, PublishedModelsWithExpertsAreTheNamedSizes) {
  expect_same(shape_of(olmoe_1b_7b), model_size("olmoe-1b-7b"));
  expect_same(shape_of(qwen_3_30b_a3b), model_size("qwen3-30b-a3b"));
  ModelShape mixtral = model_size("mixtral-8x7b");
  mixtral.experts.balance.loss = 0.02;
  expect_same(shape_of(mixtral_8x7b), mixtral);
}

// Google's gemma-3-270m as transformers 4 wrote it, HuggingFaceTB/SmolLM3-3B, ibm-granite/granite-3.1-2b-base, allenai/OLMo-2-0425-1B,
// microsoft/Phi-3-mini-4k-instruct and mistralai/Mistral-7B-v0.1, the same.
const char* const gemma_3_270m = R"({"architectures": ["Gemma3ForCausalLM"], "attention_bias": false, "attn_logit_softcapping": null,
  "final_logit_softcapping": null, "head_dim": 256, "hidden_activation": "gelu_pytorch_tanh", "hidden_size": 640,
  "intermediate_size": 2048, "layer_types": ["sliding_attention", "sliding_attention", "sliding_attention", "sliding_attention",
  "sliding_attention", "full_attention", "sliding_attention", "sliding_attention", "sliding_attention", "sliding_attention",
  "sliding_attention", "full_attention", "sliding_attention", "sliding_attention", "sliding_attention", "sliding_attention",
  "sliding_attention", "full_attention"], "max_position_embeddings": 32768, "model_type": "gemma3_text", "num_attention_heads": 4,
  "num_hidden_layers": 18, "num_key_value_heads": 1, "query_pre_attn_scalar": 256, "rms_norm_eps": 1e-06,
  "rope_local_base_freq": 10000.0, "rope_scaling": null, "rope_theta": 1000000.0, "sliding_window": 512,
  "use_bidirectional_attention": false, "vocab_size": 262144})";
const char* const smollm3_3b = R"({"architectures": ["SmolLM3ForCausalLM"], "attention_bias": false, "hidden_act": "silu",
  "hidden_size": 2048, "intermediate_size": 11008, "max_position_embeddings": 65536, "max_window_layers": 28, "mlp_bias": false,
  "model_type": "smollm3", "no_rope_layer_interval": 4, "no_rope_layers": [1, 1, 1, 0, 1, 1, 1, 0, 1, 1, 1, 0, 1, 1, 1, 0, 1, 1, 1, 0,
  1, 1, 1, 0, 1, 1, 1, 0, 1, 1, 1, 0, 1, 1, 1, 0], "num_attention_heads": 16, "num_hidden_layers": 36, "num_key_value_heads": 4,
  "rms_norm_eps": 1e-06, "rope_scaling": null, "rope_theta": 5000000.0, "sliding_window": null, "tie_word_embeddings": true,
  "use_sliding_window": false, "vocab_size": 128256})";
const char* const granite_3_1_2b = R"({"architectures": ["GraniteForCausalLM"], "attention_bias": false, "attention_multiplier": 0.015625,
  "embedding_multiplier": 12.0, "hidden_act": "silu", "hidden_size": 2048, "intermediate_size": 8192, "logits_scaling": 8.0,
  "max_position_embeddings": 131072, "mlp_bias": false, "model_type": "granite", "num_attention_heads": 32, "num_hidden_layers": 40,
  "num_key_value_heads": 8, "residual_multiplier": 0.22, "rms_norm_eps": 1e-05, "rope_scaling": null, "rope_theta": 5000000.0,
  "tie_word_embeddings": true, "vocab_size": 49155})";
const char* const olmo_2_1b = R"({"architectures": ["Olmo2ForCausalLM"], "attention_bias": false, "hidden_act": "silu", "hidden_size": 2048,
  "intermediate_size": 8192, "max_position_embeddings": 4096, "model_type": "olmo2", "num_attention_heads": 16, "num_hidden_layers": 16,
  "num_key_value_heads": 16, "rms_norm_eps": 1e-06, "rope_scaling": null, "rope_theta": 500000, "tie_word_embeddings": false,
  "vocab_size": 100352})";
const char* const phi_3_mini_4k =
    R"({"architectures": ["Phi3ForCausalLM"], "attention_bias": false, "embd_pdrop": 0.0, "hidden_act": "silu",
  "hidden_size": 3072, "intermediate_size": 8192, "max_position_embeddings": 4096, "model_type": "phi3", "num_attention_heads": 32,
  "num_hidden_layers": 32, "num_key_value_heads": 32, "original_max_position_embeddings": 4096, "resid_pdrop": 0.0, "rms_norm_eps": 1e-05,
  "rope_scaling": null, "rope_theta": 10000.0, "sliding_window": 2047, "tie_word_embeddings": false, "vocab_size": 32064})";
const char* const mistral_7b = R"({"architectures": ["MistralForCausalLM"], "hidden_act": "silu", "hidden_size": 4096,
  "intermediate_size": 14336, "max_position_embeddings": 32768, "model_type": "mistral", "num_attention_heads": 32,
  "num_hidden_layers": 32, "num_key_value_heads": 8, "rms_norm_eps": 1e-05, "rope_theta": 10000.0, "sliding_window": 4096,
  "tie_word_embeddings": false, "vocab_size": 32000})";

TEST(HuggingFaceConfig, PublishedModelsWithOtherBlocksAreTheNamedSizes) {
  const std::pair<const char*, const char*> published[] = {{gemma_3_270m, "gemma3-270m"},      {smollm3_3b, "smollm3-3b"},
                                                           {granite_3_1_2b, "granite-3.1-2b"}, {olmo_2_1b, "olmo2-1b"},
                                                           {phi_3_mini_4k, "phi-3-mini-4k"},   {mistral_7b, "mistral-7b-v0.1"}};
  for (const auto& [text, name] : published) EXPECT_EQ(shape_of(text), model_size(name)) << name;
  json::Value full = json::parse({.text = mistral_7b});
  full.set("sliding_window", {});
  EXPECT_FALSE(written_shape(full).window);
}

TEST(HuggingFaceConfig, BothWaysToWriteTheRotationsOfWindowsAreRead) {
  std::string text = gemma_3_270m;
  const std::size_t begin = text.find("\"rope_local_base_freq"), end = text.find("\"use_bidirectional");
  text.replace(begin, end - begin,
               R"("rope_parameters": {"sliding_attention": {"rope_type": "default", "rope_theta": 20000.0},
                  "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 3000000.0}}, "sliding_window": 512, )");
  const ModelShape shape = shape_of(text.c_str());
  EXPECT_EQ(shape.window.rope_theta, 20000);
  EXPECT_EQ(shape.rope_theta, 3000000);
  ASSERT_TRUE(shape.rope_scaling);
  EXPECT_EQ(shape.rope_scaling->factor, 8);
}

/// The DataError for a published file in which `key` has another value.
std::string refusal(const char* published, std::string_view key, json::Value value) {
  json::Value config = json::parse({.text = published});
  config.set(key, std::move(value));
  return error_of<DataError>([&] { written_shape(config); });
}

TEST(HuggingFaceConfig, WhatOurModelsDoNotComputeIsRefusedByName) {
  struct Case {
    const char* published;
    std::string_view key;
    json::Value value;
    std::string_view message;
  };
  const auto scaling = [](const char* type) { return json::Value(json::Object()).set("rope_type", type).set("factor", 2.0); };
  const std::vector<Case> cases{
      {llama_3_8b, "model_type", "falcon",
       "model_type \"falcon\" is a family that octet does not support; it supports llama, qwen2, qwen3, gpt2"},
      {llama_3_8b, "quantization_config", json::Value(json::Object()), "quantization_config.quant_method must be a string"},
      {llama_3_8b, "attention_bias", "yes", "attention_bias must be true or false"},
      {llama_3_8b, "hidden_act", "gelu", "hidden_act must be silu, got the string \"gelu\""},
      {llama_3_8b, "num_key_value_heads", 5, "num_key_value_heads must be a divisor of num_attention_heads = 32"},
      {llama_3_8b, "hidden_size", 4100, "hidden_size must be a multiple of num_attention_heads = 32"},
      {llama_3_8b, "hidden_size", 32, "hidden_size must be such that a head has an even number of columns"},
      {llama_3_8b, "head_dim", 127, "head_dim must be such that a head has an even number of columns"},
      {llama_3_8b, "num_hidden_layers", -1, "num_hidden_layers must be an integer from 1"},
      {llama_3_8b, "num_hidden_layers", std::int64_t(1) << 40, "num_hidden_layers must be an integer from 1"},
      {llama_3_8b, "vocab_size", {}, "vocab_size must be an integer from 1 to 16777216, got null"},
      {llama_3_8b, "rms_norm_eps", -1.0, "rms_norm_eps must be a number"},
      {llama_3_8b, "rope_scaling", scaling("dynamic"),
       "rope_scaling.rope_type must be default, linear, llama3 or yarn, got the string \"dynamic\""},
      {llama_3_8b, "rope_scaling", json::Value(json::Object()).set("factor", 2.0),
       "rope_scaling.type must be default, linear, llama3 or yarn"},
      {llama_3_8b, "rope_scaling", scaling("yarn"), "rope_scaling.original_max_position_embeddings must be an integer"},
      {llama_3_8b, "rope_scaling", scaling("llama3"), "rope_scaling.low_freq_factor must be a number"},
      {llama_3_8b, "rope_parameters", json::Value(json::Object()).set("partial_rotary_factor", 0.5),
       "rope_parameters.partial_rotary_factor must be 1"},
      {qwen_2_5_05b, "layer_types", json::Array{"full_attention", "sliding_attention"},
       "layer_types must be full_attention for every layer"},
      {qwen_3_06b, "mlp_bias", true, "mlp_bias must be false"},
      {qwen_3_06b, "layer_types", json::Array{"sliding_attention"}, "layer_types must be full_attention for every layer"},
      {olmoe_1b_7b, "clip_qkv", 0.0, "clip_qkv must be a number"},
      {olmoe_1b_7b, "clip_qkv", true, "clip_qkv must be a number"},
      {olmoe_1b_7b, "num_experts_per_tok", 65, "num_experts_per_tok must be an integer from 1 to 64"},
      {qwen_3_30b_a3b, "num_experts", {}, "num_experts must be an integer from 1"},
      {qwen_3_30b_a3b, "mlp_only_layers", json::Array{48}, "mlp_only_layers must be"},
      {qwen_3_30b_a3b, "decoder_sparse_step", 0, "decoder_sparse_step must be an integer from 1"},
      {mixtral_8x7b, "sliding_window", 4096, "sliding_window must be null"},
      {mixtral_8x7b, "router_jitter_noise", 0.1, "router_jitter_noise must be 0"},
      {gemma_3_270m, "final_logit_softcapping", 30.0, "final_logit_softcapping must be null"},
      {gemma_3_270m, "use_bidirectional_attention", true, "use_bidirectional_attention must be false"},
      {gemma_3_270m, "hidden_activation", "silu", "hidden_activation must be gelu_pytorch_tanh"},
      {gemma_3_270m, "layer_types", json::Array{"full_attention"}, "layer_types must be full_attention for each so many-th layer"},
      {smollm3_3b, "no_rope_layers", json::Array{0, 1}, "no_rope_layers must be 0 for each so many-th of the 36 layers"},
      {granite_3_1_2b, "logits_scaling", 0.0, "logits_scaling must be a number"},
      {olmo_2_1b, "mlp_bias", true, "mlp_bias must be false"},
      {phi_3_mini_4k, "attention_bias", true, "attention_bias must be false"},
      {phi_3_mini_4k, "partial_rotary_factor", 0.75, "partial_rotary_factor must be 1"},
      {phi_3_mini_4k, "rope_scaling", scaling("longrope"), "must be default, linear, llama3 or yarn, got the string \"longrope\""},
      {mistral_7b, "sliding_window", -1, "sliding_window must be an integer from 1"},
      {gpt2_124m, "activation_function", "relu", "activation_function must be gelu_new"},
      {gpt2_124m, "n_head", 7, "n_embd must be a multiple of n_head = 7"},
      {gpt2_124m, "scale_attn_weights", false, "scale_attn_weights must be true"},
      {gpt2_124m, "scale_attn_by_inverse_layer_idx", true, "scale_attn_by_inverse_layer_idx must be false"},
      {gpt2_124m, "add_cross_attention", true, "add_cross_attention must be false"},
  };
  for (const Case& c : cases) {
    const std::string error = refusal(c.published, c.key, c.value);
    EXPECT_TRUE(has(error, c.message)) << c.key << ": " << error;
  }
}

TEST(HuggingFaceConfig, ASlidingWindowIsRefusedOnlyWhereItIsInUse) {
  json::Value config = json::parse({.text = qwen_2_5_05b});
  config.set("use_sliding_window", true);
  EXPECT_EQ(written_shape(config).layers, 24);  // max_window_layers = 24: it begins above the last layer
  config.set("max_window_layers", 23);
  EXPECT_TRUE(has(error_of<DataError>([&] { written_shape(config); }), "use_sliding_window must be false"));
  config.set("sliding_window", {});
  EXPECT_EQ(written_shape(config).layers, 24);
}

TEST(HuggingFaceConfig, AFamilyThatIsNotSupportedIsNoDamagedFile) {
  const std::string error = refusal(llama_3_8b, "model_type", "falcon");
  EXPECT_FALSE(has(error, "fetch it again")) << error;
  EXPECT_TRUE(has(refusal(llama_3_8b, "hidden_size", 0), "fetch it again"));
}

TEST(HuggingFaceConfig, AFolderWithoutConfigJsonAndOneThatIsNoJsonAreNamed) {
  const testing::Scratch scratch;
  EXPECT_TRUE(has(error_of<ConfigError>([&] { read_hugging_face_shape(scratch.folder()); }), "config.json"));
  EXPECT_TRUE(has(error_of<DataError>([] { shape_of("{\"model_type\": }"); }), "config.json"));
  EXPECT_TRUE(has(error_of<DataError>([] { shape_of("{}"); }), "model_type must be a string, it is missing"));
}

}  // namespace
}  // namespace octet::models
