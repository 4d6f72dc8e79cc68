#include "octet/models/gemma3/hugging_face.hpp"

#include <cmath>

#include "octet/json/fields.hpp"
#include "octet/models/llama/hugging_face.hpp"
#include "octet/models/rope_keys.hpp"
#include "octet/models/window_keys.hpp"

namespace octet::models {
namespace {

constexpr LlamaKeys keys{.head_dim = 256, .activation_key = "hidden_activation", .activation = "gelu_pytorch_tanh"};
constexpr const char *local_theta = "rope_local_base_freq", *scalar = "query_pre_attn_scalar", *rotations = "rope_parameters";

// Up to transformers 4 rope_theta, rope_local_base_freq and rope_scaling, which is for layers without a window; since 5 an object of both.
void read_rotations(const json::Fields& config, ModelShape& shape) {
  shape.rope_scaling.reset();
  shape.rope_theta = config.number_or("rope_theta", 1e6, 1, 1e15);
  shape.window.rope_theta = config.number_or(local_theta, 10000, 1, 1e15);
  if (config.has("rope_scaling")) read_rotation(config.object("rope_scaling"), shape);
  if (!config.has(rotations)) return;
  const json::Fields both = config.object(rotations);
  if (both.has("full_attention")) read_rotation(both.object("full_attention"), shape);
  if (!both.has("sliding_attention")) return;
  const json::Fields local = both.object("sliding_attention");
  shape.window.rope_theta = local.number_or("rope_theta", shape.window.rope_theta, 1, 1e15);
  if (local.text_or("rope_type", "default") != "default") local.refuse("rope_type", "default");
}

ModelShape read_gemma3(const json::Fields& config) {
  if (config.boolean_or("use_bidirectional_attention", false)) config.refuse("use_bidirectional_attention", "false");
  for (const char* key : {"attn_logit_softcapping", "final_logit_softcapping"})
    if (config.has(key)) config.refuse(key, "null: nothing caps scores or logits");
  ModelShape shape = read_llama_like("gemma3_text", config, keys);
  read_biases(config, BiasKeys::attention, shape);
  shape.tied = config.boolean_or("tie_word_embeddings", true);
  shape.window.tokens = config.integer_or("sliding_window", 4096, 1, HuggingFaceLimits::positions);
  read_window_layers(config, config.integer_or("sliding_window_pattern", 6, 1, HuggingFaceLimits::layers), shape);
  read_rotations(config, shape);
  const std::int64_t divisor = config.integer_or(scalar, 256, 1, 1 << 30);
  shape.multipliers.embedding = std::sqrt(double(shape.width));
  if (divisor != shape.head_dim) shape.multipliers.scores = 1 / std::sqrt(double(divisor));
  return shape;
}

void write_gemma3(const ModelShape& shape, json::Value& config) {
  write_llama_like(shape, config, keys);
  const double scores = shape.multipliers.scores;
  write_biases(shape, BiasKeys::attention, config);
  config.set(local_theta, shape.window.rope_theta).set("sliding_window", shape.window.tokens);
  config.set(scalar, scores > 0 ? std::llround(1 / (scores * scores)) : shape.head_dim);
  config.set("attn_logit_softcapping", {}).set("final_logit_softcapping", {}).set("use_bidirectional_attention", false);
  config.set("pad_token_id", {});  // transformers' default is a token of the vocabulary
  write_window_layers(shape, config);
}

std::vector<WeightSlice> gemma3_weights(const ModelShape& shape) {
  return llama_like_weights(shape, {.head_norms = true, .norms = LlamaVariant::Norms::around});
}

}  // namespace

HuggingFaceFormat gemma3_hugging_face() {
  return {.architecture = "Gemma3ForCausalLM",
          .prefix = "model.",
          .constants = {".rotary_emb.inv_freq"},
          .read = read_gemma3,
          .write = write_gemma3,
          .weights = gemma3_weights};
}

}  // namespace octet::models
