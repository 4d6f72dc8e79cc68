#include "octet/models/mixtral/hugging_face.hpp"

#include "octet/json/fields.hpp"
#include "octet/models/llama/hugging_face.hpp"

namespace octet::models {
namespace {

// intermediate_size is the width of an expert: there are no other MLPs.
ModelShape read_mixtral(const json::Fields& config) {
  if (config.has("sliding_window")) config.refuse("sliding_window", "null: layers that attend within a window cannot be run");
  if (config.number_or("router_jitter_noise", 0, 0, 1) != 0) config.refuse("router_jitter_noise", "0");
  ModelShape shape = read_llama_like("mixtral", config);
  shape.norm_eps = config.number_or("rms_norm_eps", 1e-5, 0, 1);
  ExpertsShape& e = shape.experts;
  e.number = config.integer("num_local_experts", 1, HuggingFaceLimits::experts);
  e.chosen = config.integer("num_experts_per_tok", 1, e.number);
  e.width = shape.hidden, e.normalize = true;
  e.balance.loss = config.number_or("router_aux_loss_coef", 0.001, 0, 1e6);
  return shape;
}

void write_mixtral(const ModelShape& shape, json::Value& config) {
  write_llama_like(shape, config);
  const ExpertsShape& e = shape.experts;
  config.set("intermediate_size", e.width).set("sliding_window", {}).set("router_jitter_noise", 0.0);
  config.set("num_local_experts", e.number).set("num_experts_per_tok", e.chosen);
  config.set("router_aux_loss_coef", e.balance.loss).set("output_router_logits", false);
}

std::vector<WeightSlice> mixtral_weights(const ModelShape& shape) {
  return llama_like_weights(
      shape, {},
      {.router = "block_sparse_moe.gate.weight", .experts = "block_sparse_moe.experts.", .gate = "w1", .up = "w3", .down = "w2"});
}

}  // namespace

HuggingFaceFormat mixtral_hugging_face() {
  return {.architecture = "MixtralForCausalLM",
          .prefix = "model.",
          .constants = {".rotary_emb.inv_freq"},
          .read = read_mixtral,
          .write = write_mixtral,
          .weights = mixtral_weights};
}

}  // namespace octet::models
