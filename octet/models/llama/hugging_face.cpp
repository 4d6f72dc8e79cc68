#include "octet/models/llama/hugging_face.hpp"

#include "octet/json/fields.hpp"
#include "octet/models/rope_keys.hpp"

namespace octet::models {
namespace {

using Limits = HuggingFaceLimits;

ModelShape read_llama(const json::Fields& config) {
  ModelShape shape = read_llama_like("llama", config);
  read_biases(config, BiasKeys::both, shape);
  return shape;
}

void write_llama(const ModelShape& shape, json::Value& config) {
  write_llama_like(shape, config);
  write_biases(shape, BiasKeys::both, config);
  config.set("pretraining_tp", 1);
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

void read_biases(const json::Fields& config, BiasKeys keys, ModelShape& shape) {
  const auto read = [&](std::string_view key, bool known) {
    const bool is = config.boolean_or(key, false);
    if (is && !known) config.refuse(key, "false");
    return is;
  };
  shape.biases = {.attention = read("attention_bias", keys != BiasKeys::none), .mlp = read("mlp_bias", keys == BiasKeys::both)};
}

void write_biases(const ModelShape& shape, BiasKeys keys, json::Value& config) {
  if (keys != BiasKeys::none) config.set("attention_bias", shape.biases.attention);
  if (keys == BiasKeys::both) config.set("mlp_bias", shape.biases.mlp);
}

ModelShape read_llama_like(std::string_view family, const json::Fields& c, const LlamaKeys& keys) {
  ModelShape s{.family = std::string(family)};
  s.width = c.integer("hidden_size", 1, Limits::width), s.layers = c.integer("num_hidden_layers", 1, Limits::layers);
  s.heads = c.integer("num_attention_heads", 1, Limits::heads), s.kv_heads = c.integer_or("num_key_value_heads", s.heads, 1, s.heads);
  if (s.heads % s.kv_heads != 0) c.refuse("num_key_value_heads", format("a divisor of num_attention_heads = {}", s.heads));
  const std::int64_t usual = keys.head_dim > 0 ? keys.head_dim : s.width / s.heads;
  if (keys.head_dim == 0 && s.width % s.heads != 0) c.refuse("hidden_size", format("a multiple of num_attention_heads = {}", s.heads));
  s.head_dim = keys.fixed ? usual : c.integer_or("head_dim", usual, 1, Limits::head_dim);
  if (s.head_dim % 2 != 0 || s.head_dim > Limits::head_dim)
    c.refuse(c.has("head_dim") ? "head_dim" : "hidden_size",
             format("such that a head has an even number of columns up to {}", Limits::head_dim));
  s.hidden = c.integer("intermediate_size", 1, Limits::hidden), s.vocabulary = c.integer("vocab_size", 1, Limits::vocabulary);
  s.max_sequence = c.integer("max_position_embeddings", 1, Limits::positions);
  s.norm_eps = c.number_or("rms_norm_eps", keys.norm_eps, 0, 1);
  s.tied = c.boolean_or("tie_word_embeddings", false);
  const std::string wanted = keys.activation, act = c.text_or(keys.activation_key, wanted);
  if (act != wanted && !(wanted == "silu" && act == "swish")) c.refuse(keys.activation_key, wanted);
  read_rope(c, s);
  return s;
}

void write_llama_like(const ModelShape& s, json::Value& config, const LlamaKeys& keys) {
  config.set("hidden_size", s.width).set("intermediate_size", s.hidden).set("num_hidden_layers", s.layers);
  config.set("num_attention_heads", s.heads).set("num_key_value_heads", s.kv_heads).set("head_dim", s.head_dim);
  config.set("vocab_size", s.vocabulary).set("max_position_embeddings", s.max_sequence);
  config.set(keys.activation_key, keys.activation).set("rms_norm_eps", s.norm_eps).set("attention_dropout", 0.0);
  write_rope(s, config);
  config.set("tie_word_embeddings", s.tied);
}

namespace {

// Adds slices of a block, by their names there and here.
struct AddSlice {
  std::vector<WeightSlice>& out;
  std::string theirs, ours;

  void operator()(const std::string& name, const char* parameter, std::int64_t first, std::int64_t rows, bool wide = false) const {
    out.push_back({.name = theirs + name, .parameter = ours + parameter, .first = first, .rows = rows, .wide = wide});
  }
  void of_stack(std::int64_t stack, const std::string& name, const char* parameter, std::int64_t first, std::int64_t rows) const {
    (*this)(name, parameter, first, rows);
    out.back().stack = stack;
  }
};

// One tensor per expert and matrix there, one parameter of all experts here: gate and up of each are neighbours.
void add_experts(const ModelShape& s, const ExpertNames& names, const AddSlice& add) {
  const ExpertsShape& e = s.experts;
  add(names.router, "mlp.router.weight", 0, e.number);
  for (std::int64_t i = 0; i < e.number; ++i) {
    const std::string expert = format("{}{}.", names.experts, i);
    add.of_stack(e.number, expert + names.gate + ".weight", "mlp.experts.gate_up.weight", 2 * i * e.width, e.width);
    add.of_stack(e.number, expert + names.up + ".weight", "mlp.experts.gate_up.weight", (2 * i + 1) * e.width, e.width);
    add.of_stack(e.number, expert + names.down + ".weight", "mlp.experts.down.weight", i * s.width, s.width);
  }
  if (e.biased) add(names.bias, "mlp.router.bias", 0, e.number, true);
  if (e.shared == 0) return;
  const std::string shared = names.shared;
  add(shared + names.gate + ".weight", "mlp.shared.gate_up.weight", 0, e.shared * e.width);
  add(shared + names.up + ".weight", "mlp.shared.gate_up.weight", e.shared * e.width, e.shared * e.width);
  add(shared + names.down + ".weight", "mlp.shared.down.weight", 0, s.width);
}

// The first layer has the rows of queries, or of their latent, then those of the other latent and of shared keys.
void add_latents(const ModelShape& s, const AddSlice& add) {
  const LatentShape& l = s.latent;
  const std::int64_t queries = s.heads * s.head_dim, first = l.query_rank > 0 ? l.query_rank : queries;
  add(l.query_rank > 0 ? "self_attn.q_a_proj.weight" : "self_attn.q_proj.weight", "attn.q_kv_a.weight", 0, first);
  add("self_attn.kv_a_proj_with_mqa.weight", "attn.q_kv_a.weight", first, l.rank + l.turned);
  if (l.query_rank > 0) {
    add("self_attn.q_a_layernorm.weight", "attn.q_a_norm.weight", 0, l.query_rank);
    add("self_attn.q_b_proj.weight", "attn.q_b.weight", 0, queries);
  }
  add("self_attn.kv_a_layernorm.weight", "attn.kv_a_norm.weight", 0, l.rank);
  add("self_attn.kv_b_proj.weight", "attn.kv_b.weight", 0, s.heads * (s.head_dim - l.turned + l.value_width));
}

void add_heads(const ModelShape& s, const LlamaVariant& variant, const AddSlice& add) {
  const std::int64_t queries = s.heads * s.head_dim, keys = s.kv_heads * s.head_dim;
  add("self_attn.q_proj.weight", "attn.qkv.weight", 0, queries);
  add("self_attn.k_proj.weight", "attn.qkv.weight", queries, keys);
  add("self_attn.v_proj.weight", "attn.qkv.weight", queries + keys, keys);
  if (variant.head_norms || variant.norms_of_all_heads) {
    add("self_attn.q_norm.weight", "attn.q_norm.weight", 0, variant.norms_of_all_heads ? queries : s.head_dim);
    add("self_attn.k_norm.weight", "attn.k_norm.weight", 0, variant.norms_of_all_heads ? keys : s.head_dim);
  }
  if (variant.qkv_bias || s.biases.attention) {
    add("self_attn.q_proj.bias", "attn.qkv.bias", 0, queries);
    add("self_attn.k_proj.bias", "attn.qkv.bias", queries, keys);
    add("self_attn.v_proj.bias", "attn.qkv.bias", queries + keys, keys);
  }
}

void add_mlp(const ModelShape& s, const AddSlice& add) {
  add("mlp.gate_proj.weight", "mlp.gate_up.weight", 0, s.hidden);
  add("mlp.up_proj.weight", "mlp.gate_up.weight", s.hidden, s.hidden);
  add("mlp.down_proj.weight", "mlp.down.weight", 0, s.width);
  if (!s.biases.mlp) return;
  add("mlp.gate_proj.bias", "mlp.gate_up.bias", 0, s.hidden);
  add("mlp.up_proj.bias", "mlp.gate_up.bias", s.hidden, s.hidden);
  add("mlp.down_proj.bias", "mlp.down.bias", 0, s.width);
}

// Of a layer that predicts further tokens, beside its block. Files repeat the embedding and the head.
void add_ahead(const ModelShape& s, const std::string& head, const AddSlice& add) {
  const auto repeat = [&](const char* name, const std::string& parameter) {
    add.out.push_back({.name = add.theirs + name, .parameter = parameter, .rows = s.vocabulary, .alias = true, .written = true});
  };
  repeat("embed_tokens.weight", "embedding.weight");
  add("enorm.weight", "enorm.weight", 0, s.width), add("hnorm.weight", "hnorm.weight", 0, s.width);
  add("eh_proj.weight", "eh_proj.weight", 0, s.width);
  add("shared_head.norm.weight", "head_norm.weight", 0, s.width);
  repeat("shared_head.head.weight", head);
}

}  // namespace

std::vector<WeightSlice> llama_like_weights(const ModelShape& s, const LlamaVariant& variant, const ExpertNames& names) {
  std::vector<WeightSlice> out{{"model.embed_tokens.weight", "embedding.weight", 0, s.vocabulary}};
  const std::string head = s.tied ? "embedding.weight" : "lm_head.weight";
  for (std::int64_t i = 0; i < s.all_layers(); ++i) {
    const AddSlice add{out, format("model.layers.{}.", i), format("layers.{}.", i)};
    if (i >= s.layers) add_ahead(s, head, add);
    const bool ends = variant.norms != LlamaVariant::Norms::before, begins = variant.norms != LlamaVariant::Norms::after;
    if (begins) add("input_layernorm.weight", "norm1.weight", 0, s.width);
    if (s.latent) add_latents(s, add);
    else add_heads(s, variant, add);
    add("self_attn.o_proj.weight", "attn.out.weight", 0, s.width);
    if (s.biases.attention) add("self_attn.o_proj.bias", "attn.out.bias", 0, s.width);
    add("post_attention_layernorm.weight", ends ? "attn_norm.weight" : "norm2.weight", 0, s.width);
    if (begins && ends) add("pre_feedforward_layernorm.weight", "norm2.weight", 0, s.width);
    if (s.experts.in_layer(i)) add_experts(s, names, add);
    else add_mlp(s, add);
    if (ends) add("post_feedforward_layernorm.weight", "mlp_norm.weight", 0, s.width);
  }
  out.push_back({"model.norm.weight", "norm.weight", 0, s.width});
  out.push_back({.name = "lm_head.weight", .parameter = head, .rows = s.vocabulary, .alias = s.tied});
  return out;
}

}  // namespace octet::models
