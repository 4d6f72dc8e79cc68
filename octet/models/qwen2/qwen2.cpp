#include "octet/models/qwen2/qwen2.hpp"

#include "octet/models/llama/llama.hpp"

namespace octet::models {

namespace {

struct Size {
  std::int64_t width, layers, heads, kv_heads, hidden, vocabulary, context;
  bool tied = false;
  double norm_eps = 1e-6;
};

ModelShape shape(const Size& s) {
  return {.family = "qwen2",
          .width = s.width,
          .layers = s.layers,
          .heads = s.heads,
          .kv_heads = s.kv_heads,
          .head_dim = s.width / s.heads,
          .hidden = s.hidden,
          .vocabulary = s.vocabulary,
          .max_sequence = s.context,
          .norm_eps = s.norm_eps,
          .rope_theta = 1e6,
          .tied = s.tied};
}

}  // namespace

// Source: Qwen2.5 technical report (Yang et al. 2024), table 1, and the published config.json files.
std::vector<ModelSize> qwen2_sizes() {
  return {{"qwen2-tiny", shape({256, 6, 4, 2, 1024, 257, 1024, true})},
          {"qwen2.5-0.5b", shape({896, 24, 14, 2, 4864, 151936, 32768, true})},
          {"qwen2.5-1.5b", shape({1536, 28, 12, 2, 8960, 151936, 131072, true})},
          {"qwen2.5-3b", shape({2048, 36, 16, 2, 11008, 151936, 32768, true})},
          {"qwen2.5-7b", shape({3584, 28, 28, 4, 18944, 152064, 131072})},
          {"qwen2.5-14b", shape({5120, 48, 40, 8, 13824, 152064, 131072, false, 1e-5})},
          {"qwen2.5-32b", shape({5120, 64, 40, 8, 27648, 152064, 131072, false, 1e-5})}};
}

std::unique_ptr<Model> make_qwen2(const ModelShape& s, const ModelOptions& options, scaling::Precision& precision) {
  require_whole_heads(s);
  return make_llama_like(s, {.qkv_bias = true}, options, precision);
}

}  // namespace octet::models
