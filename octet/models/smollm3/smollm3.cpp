#include "octet/models/smollm3/smollm3.hpp"

#include "octet/models/llama/llama.hpp"

namespace octet::models {
namespace {

ModelShape shape(std::int64_t width, std::int64_t layers, std::int64_t heads, std::int64_t kv_heads, std::int64_t hidden,
                 std::int64_t vocabulary, std::int64_t context) {
  return {.family = "smollm3",
          .width = width,
          .layers = layers,
          .heads = heads,
          .kv_heads = kv_heads,
          .head_dim = width / heads,
          .hidden = hidden,
          .vocabulary = vocabulary,
          .max_sequence = context,
          .norm_eps = 1e-6,
          .rope_theta = 5e6,
          .tied = true,
          .unturned_step = 4};
}

}  // namespace

// Source: the published config.json.
std::vector<ModelSize> smollm3_sizes() {
  return {{"smollm3-tiny", shape(256, 8, 4, 2, 1024, 257, 1024)}, {"smollm3-3b", shape(2048, 36, 16, 4, 11008, 128256, 65536)}};
}

std::unique_ptr<Model> make_smollm3(const ModelShape& s, const ModelOptions& options, scaling::Precision& precision) {
  require_whole_heads(s);
  return make_llama_like(s, {}, options, precision);
}

}  // namespace octet::models
