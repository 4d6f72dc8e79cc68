#include "octet/models/olmoe/olmoe.hpp"

#include "octet/models/llama/llama.hpp"

namespace octet::models {
namespace {

ModelShape shape(std::int64_t width, std::int64_t layers, std::int64_t heads, const ExpertsShape& experts) {
  return {.family = "olmoe",
          .width = width,
          .layers = layers,
          .heads = heads,
          .kv_heads = heads,
          .head_dim = width / heads,
          .hidden = experts.width,
          .vocabulary = 50304,
          .max_sequence = 4096,
          .experts = experts};
}

}  // namespace

// Source: Muennighoff et al. 2024, table 10, and the published config.json.
std::vector<ModelSize> olmoe_sizes() {
  ModelShape tiny = shape(256, 4, 4, {.number = 8, .chosen = 2, .width = 256, .balance = {.loss = 0.01}});
  tiny.vocabulary = 257, tiny.max_sequence = 1024;
  return {{"olmoe-tiny", tiny},
          {"olmoe-1b-7b", shape(2048, 16, 16, {.number = 64, .chosen = 8, .width = 1024, .balance = {.loss = 0.01}})}};
}

std::unique_ptr<Model> make_olmoe(const ModelShape& s, const ModelOptions& options, scaling::Precision& precision) {
  require_whole_heads(s);
  return make_llama_like(s, {.norms_of_all_heads = true}, options, precision);
}

}  // namespace octet::models
