#include "octet/models/gpt2/gpt2.hpp"

#include <cmath>

#include "octet/models/transformer.hpp"

namespace octet::models {

namespace {

ModelShape shape(std::int64_t width, std::int64_t layers, std::int64_t heads, std::int64_t vocabulary) {
  return {.family = "gpt2",
          .width = width,
          .layers = layers,
          .heads = heads,
          .kv_heads = heads,
          .head_dim = width / heads,
          .hidden = 4 * width,
          .vocabulary = vocabulary,
          .max_sequence = 1024,
          .tied = true};
}

}  // namespace

// Source: Radford et al. 2019, table 2, and the published config.json files.
std::vector<ModelSize> gpt2_sizes() {
  return {{"gpt2-tiny", shape(256, 6, 4, 257)},
          {"gpt2-124m", shape(768, 12, 12, 50257)},
          {"gpt2-355m", shape(1024, 24, 16, 50257)},
          {"gpt2-774m", shape(1280, 36, 20, 50257)},
          {"gpt2-1.5b", shape(1600, 48, 25, 50257)}};
}

std::unique_ptr<Model> make_gpt2(const ModelShape& s, const ModelOptions& options, scaling::Precision& precision) {
  if (s.kv_heads != s.heads)
    throw ConfigError(format("model.kv_heads = {} must be model.heads = {}: gpt2 has no grouped heads", s.kv_heads, s.heads));
  if (s.heads * s.head_dim != s.width)
    throw ConfigError(format("model.width = {} must be model.heads x model.head_width = {} x {} in gpt2", s.width, s.heads, s.head_dim));
  const double out = 0.02 / std::sqrt(2.0 * double(s.layers));
  const nn::GeluBlock::Config block{.attention = {.width = s.width,
                                                  .heads = s.heads,
                                                  .kv_heads = s.kv_heads,
                                                  .head_dim = s.head_dim,
                                                  .qkv_bias = true,
                                                  .out_bias = true,
                                                  .rope = false,
                                                  .out_deviation = out},
                                    .mlp = {.width = s.width, .hidden = s.hidden, .bias = true, .out_deviation = out},
                                    .norm = s.norm_eps};
  return std::make_unique<Transformer<nn::GeluBlock, nn::LayerNorm>>(
      s, [&](std::int64_t) { return block; }, 0, s.max_sequence, options, precision);
}

}  // namespace octet::models
