#include "octet/models/olmo2/olmo2.hpp"

#include "octet/models/llama/llama.hpp"

namespace octet::models {
namespace {

ModelShape shape(std::int64_t width, std::int64_t layers, std::int64_t heads, std::int64_t kv_heads, std::int64_t hidden) {
  return {.family = "olmo2",
          .width = width,
          .layers = layers,
          .heads = heads,
          .kv_heads = kv_heads,
          .head_dim = width / heads,
          .hidden = hidden,
          .vocabulary = 100352,
          .max_sequence = 4096,
          .norm_eps = 1e-6,
          .rope_theta = 500000};
}

ModelShape tiny() {
  ModelShape s = shape(256, 6, 4, 4, 1024);
  s.vocabulary = 257, s.max_sequence = 1024;
  return s;
}

}  // namespace

// Source: OLMo Team 2024, table 3, and the published config.json files.
std::vector<ModelSize> olmo2_sizes() {
  return {{"olmo2-tiny", tiny()},
          {"olmo2-1b", shape(2048, 16, 16, 16, 8192)},
          {"olmo2-7b", shape(4096, 32, 32, 32, 11008)},
          {"olmo2-13b", shape(5120, 40, 40, 40, 13824)},
          {"olmo2-32b", shape(5120, 64, 40, 8, 27648)}};
}

std::unique_ptr<Model> make_olmo2(const ModelShape& s, const ModelOptions& options, scaling::Precision& precision) {
  require_whole_heads(s);
  return make_llama_like(s, {.norms_of_all_heads = true, .norms = LlamaVariant::Norms::after}, options, precision);
}

}  // namespace octet::models
