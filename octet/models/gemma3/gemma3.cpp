#include "octet/models/gemma3/gemma3.hpp"

#include <cmath>

#include "octet/models/llama/llama.hpp"

namespace octet::models {
namespace {

constexpr LlamaVariant variant{.head_norms = true, .norms = LlamaVariant::Norms::around, .norm_offset = 1, .gate = ops::Gate::gelu};

ModelShape shape(std::int64_t width, std::int64_t layers, std::int64_t head_dim, std::int64_t hidden, std::int64_t window,
                 std::int64_t vocabulary, std::int64_t context) {
  return {.family = "gemma3_text",
          .width = width,
          .layers = layers,
          .heads = 4,
          .kv_heads = 1,
          .head_dim = head_dim,
          .hidden = hidden,
          .vocabulary = vocabulary,
          .max_sequence = context,
          .norm_eps = 1e-6,
          .rope_theta = 1e6,
          .tied = true,
          .window = {.tokens = window, .global_step = 6, .rope_theta = 10000},
          .multipliers = {.embedding = std::sqrt(double(width))}};
}

}  // namespace

// Source: Gemma Team 2025, table 1, and the published config.json files.
std::vector<ModelSize> gemma3_sizes() {
  return {{"gemma3-tiny", shape(256, 6, 64, 1024, 128, 257, 1024)},
          {"gemma3-270m", shape(640, 18, 256, 2048, 512, 262144, 32768)},
          {"gemma3-1b", shape(1152, 26, 256, 6912, 512, 262144, 32768)}};
}

std::unique_ptr<Model> make_gemma3(const ModelShape& s, const ModelOptions& options, scaling::Precision& precision) {
  ModelShape own = s;
  own.multipliers.embedding = std::sqrt(double(s.width));
  return make_llama_like(own, variant, options, precision);
}

}  // namespace octet::models
