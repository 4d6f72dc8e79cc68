#include "octet/models/llama/llama.hpp"

#include <cmath>

#include "octet/models/transformer.hpp"

namespace octet::models {

std::vector<ModelSize> llama_sizes() {
  const ops::RopeScaling llama32{.factor = 32, .low_freq_factor = 1, .high_freq_factor = 4, .original_max_position = 8192};
  ModelShape tiny{.family = "llama",
                  .width = 256,
                  .layers = 6,
                  .heads = 4,
                  .kv_heads = 2,
                  .head_dim = 64,
                  .hidden = 1024,
                  .vocabulary = 257,
                  .max_sequence = 1024};
  ModelShape small{.family = "llama",
                   .width = 384,
                   .layers = 8,
                   .heads = 6,
                   .kv_heads = 2,
                   .head_dim = 64,
                   .hidden = 1024,
                   .vocabulary = 257,
                   .max_sequence = 2048};
  ModelShape l32_1b{.family = "llama",
                    .width = 2048,
                    .layers = 16,
                    .heads = 32,
                    .kv_heads = 8,
                    .head_dim = 64,
                    .hidden = 8192,
                    .vocabulary = 128256,
                    .max_sequence = 131072,
                    .norm_eps = 1e-5,
                    .rope_theta = 500000,
                    .rope_scaling = llama32,
                    .tied = true};
  ModelShape l3_8b{.family = "llama",
                   .width = 4096,
                   .layers = 32,
                   .heads = 32,
                   .kv_heads = 8,
                   .head_dim = 128,
                   .hidden = 14336,
                   .vocabulary = 128256,
                   .max_sequence = 8192,
                   .norm_eps = 1e-5,
                   .rope_theta = 500000};
  return {{"llama-tiny", tiny}, {"llama-small", small}, {"llama-3.2-1b", l32_1b}, {"llama-3-8b", l3_8b}};
}

std::unique_ptr<Model> make_llama_like(const ModelShape& s, bool qkv_bias, const ModelOptions& options, scaling::Precision& precision) {
  // Octet does not need this, but transformers loads no other shape, and trained weights must be exportable.
  if (s.width % s.heads != 0) throw ConfigError(format("model.width = {} must be a multiple of model.heads = {}", s.width, s.heads));
  // Output projections start smaller with depth, so that the residual stream's variance does not grow. Source: Radford et al. 2019.
  const double out = 0.02 / std::sqrt(2.0 * double(s.layers));
  const nn::GatedBlock::Config block{
      .attention =
          {.width = s.width, .heads = s.heads, .kv_heads = s.kv_heads, .head_dim = s.head_dim, .qkv_bias = qkv_bias, .out_deviation = out},
      .mlp = {.width = s.width, .hidden = s.hidden, .out_deviation = out},
      .norm_eps = s.norm_eps};
  return std::make_unique<Transformer<nn::GatedBlock, nn::RmsNorm>>(s, block, 0, options, precision);
}

std::unique_ptr<Model> make_llama(const ModelShape& s, const ModelOptions& options, scaling::Precision& precision) {
  return make_llama_like(s, false, options, precision);
}

}  // namespace octet::models
