#include "octet/models/qwen3_moe/hugging_face.hpp"

#include <algorithm>

#include "octet/json/fields.hpp"
#include "octet/models/llama/hugging_face.hpp"
#include "octet/models/qwen2/hugging_face.hpp"

namespace octet::models {
namespace {

using Limits = HuggingFaceLimits;

// Published files have num_experts, and those that transformers 5 writes num_local_experts, which it calls the same.
ModelShape read_qwen3_moe(const json::Fields& config) {
  ModelShape shape = read_llama_like("qwen3_moe", config);
  read_biases(config, BiasKeys::attention, shape);
  refuse_sliding_window(config, shape.layers);
  ExpertsShape& e = shape.experts;
  e.number = config.integer(config.has("num_local_experts") ? "num_local_experts" : "num_experts", 1, Limits::experts);
  e.width = config.integer("moe_intermediate_size", 1, Limits::hidden);
  read_router(config, 0.001, e);
  e.step = config.integer_or("decoder_sparse_step", 1, 1, Limits::layers);
  if (config.has("mlp_only_layers")) e.dense = config.integers("mlp_only_layers", 0, shape.layers - 1);
  std::ranges::sort(e.dense);
  return shape;
}

void write_qwen3_moe(const ModelShape& shape, json::Value& config) {
  write_llama_like(shape, config);
  write_biases(shape, BiasKeys::attention, config);
  write_full_attention(shape, config);
  const ExpertsShape& e = shape.experts;
  config.set("num_experts", e.number).set("moe_intermediate_size", e.width);
  write_router(e, config);
  config.set("decoder_sparse_step", e.step).set("mlp_only_layers", json::array_of(e.dense));
}

std::vector<WeightSlice> qwen3_moe_weights(const ModelShape& shape) { return llama_like_weights(shape, {.head_norms = true}); }

}  // namespace

void read_router(const json::Fields& config, double usual_loss, ExpertsShape& e) {
  e.chosen = config.integer("num_experts_per_tok", 1, e.number);
  e.normalize = config.boolean_or("norm_topk_prob", false);
  e.balance.loss = config.number_or("router_aux_loss_coef", usual_loss, 0, 1e6);
}

void write_router(const ExpertsShape& e, json::Value& config) {
  config.set("num_experts_per_tok", e.chosen).set("norm_topk_prob", e.normalize);
  config.set("router_aux_loss_coef", e.balance.loss).set("output_router_logits", false);
}

HuggingFaceFormat qwen3_moe_hugging_face() {
  return {.architecture = "Qwen3MoeForCausalLM",
          .prefix = "model.",
          .constants = {".rotary_emb.inv_freq"},
          .read = read_qwen3_moe,
          .write = write_qwen3_moe,
          .weights = qwen3_moe_weights};
}

}  // namespace octet::models
