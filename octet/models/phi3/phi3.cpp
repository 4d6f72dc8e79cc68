#include "octet/models/phi3/phi3.hpp"

#include "octet/models/llama/llama.hpp"

namespace octet::models {
namespace {

ModelShape shape(std::int64_t width, std::int64_t layers, std::int64_t heads, std::int64_t kv_heads, std::int64_t hidden) {
  return {.family = "phi3",
          .width = width,
          .layers = layers,
          .heads = heads,
          .kv_heads = kv_heads,
          .head_dim = width / heads,
          .hidden = hidden,
          .vocabulary = 32064,
          .max_sequence = 4096,
          .window = {.tokens = 2047}};
}

ModelShape tiny() {
  ModelShape s = shape(256, 6, 4, 2, 1024);
  s.vocabulary = 257, s.max_sequence = 1024, s.window.tokens = 511;
  return s;
}

}  // namespace

// Source: the published config.json files.
std::vector<ModelSize> phi3_sizes() {
  return {{"phi3-tiny", tiny()}, {"phi-3-mini-4k", shape(3072, 32, 32, 32, 8192)}, {"phi-3-medium-4k", shape(5120, 40, 40, 10, 17920)}};
}

std::unique_ptr<Model> make_phi3(const ModelShape& s, const ModelOptions& options, scaling::Precision& precision) {
  require_whole_heads(s);
  return make_llama_like(s, {}, options, precision);
}

}  // namespace octet::models
