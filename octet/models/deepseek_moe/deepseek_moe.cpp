#include "octet/models/deepseek_moe/deepseek_moe.hpp"

#include "octet/models/llama/llama.hpp"

namespace octet::models {
namespace {

ModelShape shape(std::int64_t width, std::int64_t layers, std::int64_t heads, std::int64_t kv_heads, std::int64_t hidden,
                 const ExpertsShape& experts) {
  return {.family = "deepseek_moe",
          .width = width,
          .layers = layers,
          .heads = heads,
          .kv_heads = kv_heads,
          .head_dim = 128,
          .hidden = hidden,
          .vocabulary = 102400,
          .max_sequence = 4096,
          .norm_eps = 1e-6,
          .experts = experts};
}

// The router of DeepSeek-V3: sigmoid scores, a bias instead of a loss, and a small loss per sequence.
ModelShape tiny() {
  ModelShape s = shape(256, 4, 4, 2, 512, {.number = 8, .chosen = 2, .width = 128, .shared = 1});
  s.head_dim = 64, s.vocabulary = 257, s.max_sequence = 1024;
  ExpertsShape& e = s.experts;
  e.score = ops::Routing::Score::sigmoid, e.normalize = true, e.first_dense = 1, e.groups = 4, e.kept_groups = 2, e.scaling = 2.5;
  e.balance = {.over = nn::Balance::Over::sequence, .loss = 0, .bias_rate = 0.001};
  return s;
}

}  // namespace

// Source: DeepSeek-AI 2024, "DeepSeek-V2", appendix B, for the experts of V2-Lite; heads are grouped instead of latent.
std::vector<ModelSize> deepseek_moe_sizes() {
  const ExpertsShape experts{.number = 64,
                             .chosen = 6,
                             .width = 1408,
                             .shared = 2,
                             .balance = {.over = nn::Balance::Over::layer, .loss = 0.001},
                             .first_dense = 1};
  return {{"deepseek-moe-tiny", tiny()}, {"deepseek-moe-16b-like", shape(2048, 27, 16, 4, 10944, experts)}};
}

std::unique_ptr<Model> make_deepseek_moe(const ModelShape& s, const ModelOptions& options, scaling::Precision& precision) {
  return make_llama_like(s, {}, options, precision);
}

}  // namespace octet::models
