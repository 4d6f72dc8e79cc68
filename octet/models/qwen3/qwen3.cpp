#include "octet/models/qwen3/qwen3.hpp"

#include "octet/models/llama/llama.hpp"

namespace octet::models {
namespace {

struct Size {
  std::int64_t width, layers, heads, kv_heads, hidden;
  bool tied = false;
};

ModelShape shape(const Size& s) {
  return {.family = "qwen3",
          .width = s.width,
          .layers = s.layers,
          .heads = s.heads,
          .kv_heads = s.kv_heads,
          .head_dim = 128,
          .hidden = s.hidden,
          .vocabulary = 151936,
          .max_sequence = 40960,
          .norm_eps = 1e-6,
          .rope_theta = 1e6,
          .tied = s.tied};
}

ModelShape tiny() {
  ModelShape s = shape({256, 6, 4, 2, 1024, true});
  s.head_dim = 64, s.vocabulary = 257, s.max_sequence = 1024;
  return s;
}

}  // namespace

// Source: Qwen3 technical report (Yang et al. 2025), table 1, and the published config.json files.
std::vector<ModelSize> qwen3_sizes() {
  return {{"qwen3-tiny", tiny()},
          {"qwen3-0.6b", shape({1024, 28, 16, 8, 3072, true})},
          {"qwen3-1.7b", shape({2048, 28, 16, 8, 6144, true})},
          {"qwen3-4b", shape({2560, 36, 32, 8, 9728, true})},
          {"qwen3-8b", shape({4096, 36, 32, 8, 12288})},
          {"qwen3-14b", shape({5120, 40, 40, 8, 17408})},
          {"qwen3-32b", shape({5120, 64, 64, 8, 25600})}};
}

std::unique_ptr<Model> make_qwen3(const ModelShape& s, const ModelOptions& options, scaling::Precision& precision) {
  return make_llama_like(s, {.head_norms = true}, options, precision);
}

}  // namespace octet::models
