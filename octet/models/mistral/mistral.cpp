#include "octet/models/mistral/mistral.hpp"

#include "octet/models/llama/llama.hpp"

namespace octet::models {
namespace {

ModelShape shape(std::int64_t width, std::int64_t layers, std::int64_t heads, std::int64_t kv_heads, std::int64_t head_dim,
                 std::int64_t hidden, std::int64_t vocabulary, std::int64_t context) {
  return {.family = "mistral",
          .width = width,
          .layers = layers,
          .heads = heads,
          .kv_heads = kv_heads,
          .head_dim = head_dim,
          .hidden = hidden,
          .vocabulary = vocabulary,
          .max_sequence = context,
          .rope_theta = 1e6};
}

ModelShape first_version() {
  ModelShape s = shape(4096, 32, 32, 8, 128, 14336, 32000, 32768);
  s.rope_theta = 10000, s.window.tokens = 4096;
  return s;
}

}  // namespace

// Source: Jiang et al. 2023, table 1, and the published config.json files.
std::vector<ModelSize> mistral_sizes() {
  return {{"mistral-tiny", shape(256, 6, 4, 2, 64, 1024, 257, 1024)},
          {"mistral-7b-v0.1", first_version()},
          {"mistral-7b-v0.3", shape(4096, 32, 32, 8, 128, 14336, 32768, 32768)},
          {"mistral-nemo-12b", shape(5120, 40, 32, 8, 128, 14336, 131072, 131072)}};
}

std::unique_ptr<Model> make_mistral(const ModelShape& s, const ModelOptions& options, scaling::Precision& precision) {
  return make_llama_like(s, {}, options, precision);
}

}  // namespace octet::models
