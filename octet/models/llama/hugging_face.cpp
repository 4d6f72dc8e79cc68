#include "octet/models/llama/hugging_face.hpp"

#include <cmath>
#include <functional>

#include "octet/json/fields.hpp"

namespace octet::models {
namespace {

using Limits = HuggingFaceLimits;
constexpr double max_theta = 1e15, max_factor = 1e6;

ops::RopeScaling read_llama3(const json::Fields& rope) {
  const ops::RopeScaling s{.factor = rope.number("factor", 1, max_factor),
                           .low_freq_factor = rope.number("low_freq_factor", 1e-6, max_factor),
                           .high_freq_factor = rope.number("high_freq_factor", 1e-6, max_factor),
                           .original_max_position = double(rope.integer("original_max_position_embeddings", 1, Limits::positions))};
  if (s.high_freq_factor <= s.low_freq_factor) rope.refuse("high_freq_factor", format("above low_freq_factor = {}", s.low_freq_factor));
  return s;
}

/// The rotation: "rope_theta" and "rope_scaling" up to transformers 4, "rope_parameters" with both since 5. As there, rope_scaling wins.
void read_rope(const json::Fields& config, ModelShape& shape) {
  shape.rope_theta = config.number_or("rope_theta", 10000, 1, max_theta);
  const char* const key = config.has("rope_scaling") ? "rope_scaling" : "rope_parameters";
  if (!config.has(key)) return;
  const json::Fields rope = config.object(key);
  shape.rope_theta = rope.number_or("rope_theta", shape.rope_theta, 1, max_theta);
  const char* const type_key = rope.has("rope_type") ? "rope_type" : "type";
  const std::string type = rope.text_or(type_key, rope.has("factor") ? "" : "default");
  if (type == "llama3") shape.rope_scaling = read_llama3(rope);
  else if (type != "default") rope.refuse(type_key, "default or llama3");
  if (rope.number_or("partial_rotary_factor", 1, 0, 1) != 1) rope.refuse("partial_rotary_factor", "1");
}

void write_rope(const ModelShape& shape, json::Value& config) {
  config.set("rope_theta", shape.rope_theta);
  if (!shape.rope_scaling) {
    config.set("rope_scaling", {});
    return;
  }
  const ops::RopeScaling& s = *shape.rope_scaling;
  json::Value rope = json::Object();
  rope.set("rope_type", "llama3")
      .set("factor", s.factor)
      .set("low_freq_factor", s.low_freq_factor)
      .set("high_freq_factor", s.high_freq_factor);
  rope.set("original_max_position_embeddings", std::llround(s.original_max_position));
  config.set("rope_scaling", std::move(rope));
}

void require_false(const json::Fields& config, std::string_view key) {
  if (config.boolean_or(key, false)) config.refuse(key, "false");
}

ModelShape read_llama(const json::Fields& config) {
  require_false(config, "attention_bias");
  require_false(config, "mlp_bias");
  return read_llama_like("llama", config);
}

void write_llama(const ModelShape& shape, json::Value& config) {
  write_llama_like(shape, config);
  config.set("attention_bias", false).set("mlp_bias", false).set("pretraining_tp", 1);
}

std::vector<WeightSlice> llama_weights(const ModelShape& shape) { return llama_like_weights(shape, {}); }

}  // namespace

HuggingFaceFormat llama_hugging_face() {
  return {.architecture = "LlamaForCausalLM",
          .prefix = "model.",
          .constants = {".rotary_emb.inv_freq"},
          .read = read_llama,
          .write = write_llama,
          .weights = llama_weights};
}

ModelShape read_llama_like(std::string_view family, const json::Fields& c, const LlamaKeys& keys) {
  ModelShape s{.family = std::string(family)};
  s.width = c.integer("hidden_size", 1, Limits::width), s.layers = c.integer("num_hidden_layers", 1, Limits::layers);
  s.heads = c.integer("num_attention_heads", 1, Limits::heads), s.kv_heads = c.integer_or("num_key_value_heads", s.heads, 1, s.heads);
  if (s.heads % s.kv_heads != 0) c.refuse("num_key_value_heads", format("a divisor of num_attention_heads = {}", s.heads));
  const std::int64_t usual = keys.head_dim > 0 ? keys.head_dim : s.width / s.heads;
  if (keys.head_dim == 0 && s.width % s.heads != 0) c.refuse("hidden_size", format("a multiple of num_attention_heads = {}", s.heads));
  s.head_dim = c.integer_or("head_dim", usual, 1, Limits::head_dim);
  if (s.head_dim % 2 != 0 || s.head_dim > Limits::head_dim)
    c.refuse(c.has("head_dim") ? "head_dim" : "hidden_size",
             format("such that a head has an even number of columns up to {}", Limits::head_dim));
  s.hidden = c.integer("intermediate_size", 1, Limits::hidden), s.vocabulary = c.integer("vocab_size", 1, Limits::vocabulary);
  s.max_sequence = c.integer("max_position_embeddings", 1, Limits::positions);
  s.norm_eps = c.number_or("rms_norm_eps", 1e-6, 0, 1);
  s.tied = c.boolean_or("tie_word_embeddings", false);
  if (const std::string act = c.text_or("hidden_act", "silu"); act != "silu" && act != "swish") c.refuse("hidden_act", "silu");
  read_rope(c, s);
  return s;
}

void write_llama_like(const ModelShape& s, json::Value& config) {
  config.set("hidden_size", s.width).set("intermediate_size", s.hidden).set("num_hidden_layers", s.layers);
  config.set("num_attention_heads", s.heads).set("num_key_value_heads", s.kv_heads).set("head_dim", s.head_dim);
  config.set("vocab_size", s.vocabulary).set("max_position_embeddings", s.max_sequence);
  config.set("hidden_act", "silu").set("rms_norm_eps", s.norm_eps).set("attention_dropout", 0.0);
  write_rope(s, config);
  config.set("tie_word_embeddings", s.tied);
}

namespace {

using AddSlice = std::function<void(const std::string& name, const char* parameter, std::int64_t first, std::int64_t rows)>;

// One tensor per expert and matrix there, one parameter of all experts here: gate and up of each are neighbours.
void add_experts(const ModelShape& s, const ExpertNames& names, const AddSlice& add) {
  const ExpertsShape& e = s.experts;
  add(names.router, "mlp.router.weight", 0, e.number);
  for (std::int64_t i = 0; i < e.number; ++i) {
    const std::string expert = format("{}{}.", names.experts, i);
    add(expert + names.gate + ".weight", "mlp.experts.gate_up.weight", 2 * i * e.width, e.width);
    add(expert + names.up + ".weight", "mlp.experts.gate_up.weight", (2 * i + 1) * e.width, e.width);
    add(expert + names.down + ".weight", "mlp.experts.down.weight", i * s.width, s.width);
  }
}

void add_mlp(const ModelShape& s, const AddSlice& add) {
  add("mlp.gate_proj.weight", "mlp.gate_up.weight", 0, s.hidden);
  add("mlp.up_proj.weight", "mlp.gate_up.weight", s.hidden, s.hidden);
  add("mlp.down_proj.weight", "mlp.down.weight", 0, s.width);
}

}  // namespace

std::vector<WeightSlice> llama_like_weights(const ModelShape& s, const LlamaVariant& variant, const ExpertNames& names) {
  const std::int64_t queries = s.heads * s.head_dim, keys = s.kv_heads * s.head_dim;
  std::vector<WeightSlice> out{{"model.embed_tokens.weight", "embedding.weight", 0, s.vocabulary}};
  for (std::int64_t i = 0; i < s.layers; ++i) {
    const std::string theirs = format("model.layers.{}.", i), ours = format("layers.{}.", i);
    const AddSlice add = [&](const std::string& name, const char* parameter, std::int64_t first, std::int64_t rows) {
      out.push_back({theirs + name, ours + parameter, first, rows});
    };
    add("input_layernorm.weight", "norm1.weight", 0, s.width);
    add("self_attn.q_proj.weight", "attn.qkv.weight", 0, queries);
    add("self_attn.k_proj.weight", "attn.qkv.weight", queries, keys);
    add("self_attn.v_proj.weight", "attn.qkv.weight", queries + keys, keys);
    if (variant.head_norms || variant.norms_of_all_heads) {
      add("self_attn.q_norm.weight", "attn.q_norm.weight", 0, variant.norms_of_all_heads ? queries : s.head_dim);
      add("self_attn.k_norm.weight", "attn.k_norm.weight", 0, variant.norms_of_all_heads ? keys : s.head_dim);
    }
    if (variant.qkv_bias) {
      add("self_attn.q_proj.bias", "attn.qkv.bias", 0, queries);
      add("self_attn.k_proj.bias", "attn.qkv.bias", queries, keys);
      add("self_attn.v_proj.bias", "attn.qkv.bias", queries + keys, keys);
    }
    add("self_attn.o_proj.weight", "attn.out.weight", 0, s.width);
    add("post_attention_layernorm.weight", "norm2.weight", 0, s.width);
    if (s.experts.in_layer(i)) add_experts(s, names, add);
    else add_mlp(s, add);
  }
  out.push_back({"model.norm.weight", "norm.weight", 0, s.width});
  out.push_back(
      {.name = "lm_head.weight", .parameter = s.tied ? "embedding.weight" : "lm_head.weight", .rows = s.vocabulary, .alias = s.tied});
  return out;
}

}  // namespace octet::models
