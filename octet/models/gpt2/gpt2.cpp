#include "octet/models/gpt2/gpt2.hpp"

#include <cmath>

#include "octet/models/transformer.hpp"

namespace octet::models {

// Source: Radford et al. 2019, table 2.
std::vector<ModelSize> gpt2_sizes() {
  ModelShape tiny{.family = "gpt2",
                  .width = 256,
                  .layers = 6,
                  .heads = 4,
                  .kv_heads = 4,
                  .head_dim = 64,
                  .hidden = 1024,
                  .vocabulary = 257,
                  .max_sequence = 1024,
                  .tied = true};
  ModelShape b124{.family = "gpt2",
                  .width = 768,
                  .layers = 12,
                  .heads = 12,
                  .kv_heads = 12,
                  .head_dim = 64,
                  .hidden = 3072,
                  .vocabulary = 50257,
                  .max_sequence = 1024,
                  .tied = true};
  return {{"gpt2-tiny", tiny}, {"gpt2-124m", b124}};
}

std::unique_ptr<Model> make_gpt2(const ModelShape& s, const ModelOptions& options, scaling::Precision& precision) {
  if (s.kv_heads != s.heads)
    throw ConfigError(format("model.kv_heads = {} must be model.heads = {}: gpt2 has no grouped heads", s.kv_heads, s.heads));
  if (s.heads * s.head_dim != s.width)
    throw ConfigError(format("model.width = {} must be model.heads x model.head_dim = {} x {} in gpt2", s.width, s.heads, s.head_dim));
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
                                    .norm_eps = s.norm_eps};
  return std::make_unique<Transformer<nn::GeluBlock, nn::LayerNorm>>(s, block, s.max_sequence, options, precision);
}

}  // namespace octet::models
