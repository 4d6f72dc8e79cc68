#include "octet/models/mixtral/mixtral.hpp"

#include "octet/models/llama/llama.hpp"

namespace octet::models {
namespace {

ModelShape shape(std::int64_t width, std::int64_t layers, std::int64_t heads, std::int64_t kv_heads, std::int64_t hidden,
                 double loss = 0.001) {
  return {.family = "mixtral",
          .width = width,
          .layers = layers,
          .heads = heads,
          .kv_heads = kv_heads,
          .head_dim = width / heads,
          .hidden = hidden,
          .vocabulary = 32000,
          .max_sequence = 32768,
          .rope_theta = 1e6,
          .experts = {.number = 8, .chosen = 2, .width = hidden, .normalize = true, .balance = {.loss = loss}}};
}

}  // namespace

// Source: Jiang et al. 2024, table 1, and the published config.json.
std::vector<ModelSize> mixtral_sizes() {
  ModelShape tiny = shape(256, 4, 4, 2, 256, 0.01);
  tiny.vocabulary = 257, tiny.max_sequence = 1024;
  return {{"mixtral-tiny", tiny}, {"mixtral-8x7b", shape(4096, 32, 32, 8, 14336)}};
}

std::unique_ptr<Model> make_mixtral(const ModelShape& s, const ModelOptions& options, scaling::Precision& precision) {
  return make_llama_like(s, {}, options, precision);
}

}  // namespace octet::models
