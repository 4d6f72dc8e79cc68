#include "octet/models/deepseek_v2/hugging_face.hpp"

#include "octet/json/fields.hpp"
#include "octet/models/llama/hugging_face.hpp"

namespace octet::models {
namespace {

using Limits = HuggingFaceLimits;

void require_false(const json::Fields& config, std::string_view key) {
  if (config.boolean_or(key, false)) config.refuse(key, "false");
}

void read_latent(const json::Fields& config, ModelShape& s) {
  const std::int64_t heads = config.integer_or("num_key_value_heads", s.heads, 1, Limits::heads);
  if (heads != s.heads) config.refuse("num_key_value_heads", format("num_attention_heads = {}", s.heads));
  s.kv_heads = s.heads;
  LatentShape& l = s.latent;
  l.rank = config.integer("kv_lora_rank", 1, Limits::width);
  l.query_rank = config.integer_or("q_lora_rank", 0, 1, Limits::width);
  l.turned = config.integer("qk_rope_head_dim", 2), l.value_width = config.integer("v_head_dim", 2);
}

// Parts of heads are pairs of columns.
std::int64_t columns_of_head(const json::Fields& config) {
  for (const char* key : {"qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"})
    if (config.integer(key, 2, Limits::head_dim / 2) % 2 != 0) config.refuse(key, "even");
  return config.integer("qk_nope_head_dim", 2) + config.integer("qk_rope_head_dim", 2);
}

void read_experts(const json::Fields& config, ModelShape& s) {
  ExpertsShape& e = s.experts;
  e.number = config.integer("n_routed_experts", 1, Limits::experts);
  e.chosen = config.integer("num_experts_per_tok", 1, e.number);
  e.width = config.integer("moe_intermediate_size", 1, Limits::hidden);
  e.shared = config.integer_or("n_shared_experts", 0, 0, Limits::experts);
  e.scaling = config.number_or("routed_scaling_factor", 1, 1e-6, 1e6);
  e.first_dense = config.integer_or("first_k_dense_replace", 0, 0, s.layers - 1);
  if (config.integer_or("moe_layer_freq", 1, 0) != 1) config.refuse("moe_layer_freq", "1");
  using Over = nn::Balance::Over;
  e.balance.over = config.boolean_or("seq_aux", true) ? Over::sequence : Over::layer;
  e.balance.loss = config.number_or("aux_loss_alpha", 0, 0, 1e6);
}

ModelShape read_deepseek_v2(const json::Fields& config) {
  for (const char* key : {"mlp_bias", "norm_topk_prob"}) require_false(config, key);
  if (config.text_or("scoring_func", "softmax") != "softmax") config.refuse("scoring_func", "\"softmax\"");
  ModelShape s = read_deepseek("deepseek_v2", config);
  const std::string method = config.text_or("topk_method", "greedy");
  if (method == "group_limited_greedy") {
    s.experts.groups = config.integer("n_group", 1, s.experts.number);
    s.experts.kept_groups = config.integer("topk_group", 1, s.experts.groups);
  } else if (method != "greedy") {
    config.refuse("topk_method", "\"greedy\" or \"group_limited_greedy\"");
  }
  return s;
}

void write_deepseek_v2(const ModelShape& s, json::Value& config) {
  write_deepseek(s, config);
  const ExpertsShape& e = s.experts;
  config.set("topk_method", e.groups > 1 ? "group_limited_greedy" : "greedy").set("n_group", e.groups).set("topk_group", e.kept_groups);
  config.set("norm_topk_prob", false).set("scoring_func", "softmax").set("mlp_bias", false);
}

}  // namespace

ModelShape read_deepseek(std::string_view family, const json::Fields& config) {
  require_false(config, "attention_bias");
  ModelShape s = read_llama_like(family, config, {.head_dim = columns_of_head(config), .fixed = true});
  read_latent(config, s), read_experts(config, s);
  return s;
}

// transformers calls the rotated columns head_dim.
void write_deepseek(const ModelShape& s, json::Value& config) {
  write_llama_like(s, config);
  const LatentShape& l = s.latent;
  config.set("head_dim", l.turned).set("attention_bias", false).set("kv_lora_rank", l.rank);
  config.set("q_lora_rank", l.query_rank > 0 ? json::Value(l.query_rank) : json::Value());
  config.set("qk_nope_head_dim", s.head_dim - l.turned).set("qk_rope_head_dim", l.turned).set("v_head_dim", l.value_width);
  const ExpertsShape& e = s.experts;
  config.set("n_routed_experts", e.number).set("num_experts_per_tok", e.chosen).set("moe_intermediate_size", e.width);
  config.set("n_shared_experts", e.shared).set("routed_scaling_factor", e.scaling).set("first_k_dense_replace", e.first_dense);
  config.set("moe_layer_freq", 1).set("aux_loss_alpha", e.balance.loss);
  config.set("seq_aux", e.balance.over == nn::Balance::Over::sequence);
}

std::vector<WeightSlice> deepseek_weights(const ModelShape& s) { return llama_like_weights(s, {}); }

HuggingFaceFormat deepseek_v2_hugging_face() {
  return {.architecture = "DeepseekV2ForCausalLM",
          .prefix = "model.",
          .constants = {".rotary_emb.inv_freq"},
          .read = read_deepseek_v2,
          .write = write_deepseek_v2,
          .weights = deepseek_weights};
}

}  // namespace octet::models
