#include "octet/models/granite/granite.hpp"

#include "octet/models/llama/llama.hpp"

namespace octet::models {
namespace {

ModelShape shape(std::int64_t width, std::int64_t layers, std::int64_t heads, std::int64_t kv_heads, std::int64_t hidden,
                 const Multipliers& m) {
  return {.family = "granite",
          .width = width,
          .layers = layers,
          .heads = heads,
          .kv_heads = kv_heads,
          .head_dim = width / heads,
          .hidden = hidden,
          .vocabulary = 49155,
          .max_sequence = 131072,
          .rope_theta = 5e6,
          .tied = true,
          .multipliers = m};
}

ModelShape tiny() {
  ModelShape s = shape(256, 6, 4, 2, 1024, {.embedding = 12, .branch = 0.22, .logits_divisor = 8, .scores = 0.015625});
  s.vocabulary = 257, s.max_sequence = 1024, s.rope_theta = 10000;
  return s;
}

}  // namespace

// Source: the published config.json files.
std::vector<ModelSize> granite_sizes() {
  return {{"granite-tiny", tiny()},
          {"granite-3.1-2b", shape(2048, 40, 32, 8, 8192, {.embedding = 12, .branch = 0.22, .logits_divisor = 8, .scores = 0.015625})},
          {"granite-3.1-8b", shape(4096, 40, 32, 8, 12800, {.embedding = 12, .branch = 0.22, .logits_divisor = 16, .scores = 0.0078125})}};
}

std::unique_ptr<Model> make_granite(const ModelShape& s, const ModelOptions& options, scaling::Precision& precision) {
  require_whole_heads(s);
  return make_llama_like(s, {}, options, precision);
}

}  // namespace octet::models
