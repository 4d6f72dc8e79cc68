#include "octet/models/gpt2/hugging_face.hpp"

#include "octet/json/fields.hpp"

namespace octet::models {
namespace {

using Limits = HuggingFaceLimits;

ModelShape read_gpt2(const json::Fields& c) {
  ModelShape s{.family = "gpt2"};
  s.width = c.integer("n_embd", 1, Limits::width), s.layers = c.integer("n_layer", 1, Limits::layers);
  s.heads = s.kv_heads = c.integer("n_head", 1, Limits::heads);
  if (s.width % s.heads != 0) c.refuse("n_embd", format("a multiple of n_head = {}", s.heads));
  s.head_dim = s.width / s.heads;
  if (s.head_dim % 2 != 0 || s.head_dim > Limits::head_dim)
    c.refuse("n_embd", format("such that a head has an even number of columns up to {}", Limits::head_dim));
  s.hidden = c.integer_or("n_inner", 4 * s.width, 1, Limits::hidden);
  s.vocabulary = c.integer("vocab_size", 1, Limits::vocabulary), s.max_sequence = c.integer("n_positions", 1, Limits::positions);
  s.norm_eps = c.number_or("layer_norm_epsilon", 1e-5, 0, 1);
  s.tied = c.boolean_or("tie_word_embeddings", true);
  if (const std::string act = c.text_or("activation_function", "gelu_new"); act != "gelu_new" && act != "gelu_pytorch_tanh")
    c.refuse("activation_function", "gelu_new");
  if (!c.boolean_or("scale_attn_weights", true)) c.refuse("scale_attn_weights", "true");
  for (const char* key : {"scale_attn_by_inverse_layer_idx", "add_cross_attention"})
    if (c.boolean_or(key, false)) c.refuse(key, "false");
  return s;
}

void write_gpt2(const ModelShape& s, json::Value& config) {
  config.set("n_embd", s.width).set("n_layer", s.layers).set("n_head", s.heads).set("n_inner", s.hidden);
  config.set("vocab_size", s.vocabulary).set("n_positions", s.max_sequence).set("n_ctx", s.max_sequence);
  config.set("activation_function", "gelu_new").set("layer_norm_epsilon", s.norm_eps);
  config.set("attn_pdrop", 0.0).set("embd_pdrop", 0.0).set("resid_pdrop", 0.0);
  config.set("scale_attn_weights", true).set("scale_attn_by_inverse_layer_idx", false).set("tie_word_embeddings", s.tied);
}

std::vector<WeightSlice> gpt2_weights(const ModelShape& s) {
  std::vector<WeightSlice> out{{"transformer.wte.weight", "embedding.weight", 0, s.vocabulary},
                               {"transformer.wpe.weight", "positions.weight", 0, s.max_sequence}};
  // A norm's or a linear's weight and bias. Queries, keys and values are one linear there too, in the same order.
  const auto add = [&](const std::string& theirs, const std::string& ours, std::int64_t rows, bool transposed) {
    out.push_back({.name = theirs + ".weight", .parameter = ours + ".weight", .rows = rows, .transposed = transposed});
    out.push_back({.name = theirs + ".bias", .parameter = ours + ".bias", .rows = rows});
  };
  for (std::int64_t i = 0; i < s.layers; ++i) {
    const std::string theirs = format("transformer.h.{}.", i), ours = format("layers.{}.", i);
    add(theirs + "ln_1", ours + "norm1", s.width, false);
    add(theirs + "attn.c_attn", ours + "attn.qkv", 3 * s.width, true);
    add(theirs + "attn.c_proj", ours + "attn.out", s.width, true);
    add(theirs + "ln_2", ours + "norm2", s.width, false);
    add(theirs + "mlp.c_fc", ours + "mlp.up", s.hidden, true);
    add(theirs + "mlp.c_proj", ours + "mlp.down", s.width, true);
  }
  add("transformer.ln_f", "norm", s.width, false);
  out.push_back(
      {.name = "lm_head.weight", .parameter = s.tied ? "embedding.weight" : "lm_head.weight", .rows = s.vocabulary, .alias = s.tied});
  return out;
}

}  // namespace

HuggingFaceFormat gpt2_hugging_face() {
  return {.architecture = "GPT2LMHeadModel",
          .prefix = "transformer.",
          .constants = {".attn.bias", ".attn.masked_bias"},
          .read = read_gpt2,
          .write = write_gpt2,
          .weights = gpt2_weights};
}

}  // namespace octet::models
