#include "octet/models/qwen3_moe/qwen3_moe.hpp"

#include "octet/models/llama/llama.hpp"

namespace octet::models {
namespace {

ModelShape shape(std::int64_t width, std::int64_t layers, std::int64_t heads, std::int64_t kv_heads, std::int64_t hidden,
                 const ExpertsShape& experts) {
  return {.family = "qwen3_moe",
          .width = width,
          .layers = layers,
          .heads = heads,
          .kv_heads = kv_heads,
          .head_dim = 128,
          .hidden = hidden,
          .vocabulary = 151936,
          .max_sequence = 40960,
          .norm_eps = 1e-6,
          .rope_theta = 1e6,
          .experts = experts};
}

ExpertsShape experts(std::int64_t number, std::int64_t chosen, std::int64_t width) {
  return {.number = number, .chosen = chosen, .width = width, .normalize = true, .balance = {.loss = 0.001}};
}

ModelShape tiny() {
  ModelShape s = shape(256, 4, 4, 2, 512, experts(8, 2, 256));
  s.head_dim = 64, s.vocabulary = 257, s.max_sequence = 1024, s.tied = true, s.experts.balance.loss = 0.01;
  return s;
}

}  // namespace

// Source: Qwen3 technical report (Yang et al. 2025), table 2, and the published config.json files.
std::vector<ModelSize> qwen3_moe_sizes() {
  return {{"moe-tiny", tiny()}, {"qwen3-30b-a3b", shape(2048, 48, 32, 4, 6144, experts(128, 8, 768))}};
}

std::unique_ptr<Model> make_qwen3_moe(const ModelShape& s, const ModelOptions& options, scaling::Precision& precision) {
  return make_llama_like(s, {.head_norms = true}, options, precision);
}

}  // namespace octet::models
