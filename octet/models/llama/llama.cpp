#include "octet/models/llama/llama.hpp"

#include <cmath>

#include "octet/models/transformer.hpp"

namespace octet::models {

namespace {

/// Llama 3's vocabulary and rotation.
ModelShape llama3(ModelShape s, double factor = 0) {
  s.vocabulary = 128256, s.norm_eps = 1e-5, s.rope_theta = 500000;
  s.max_sequence = factor > 0 ? 131072 : 8192;
  if (factor > 0)
    s.rope_scaling = ops::RopeScaling{.factor = factor, .low_freq_factor = 1, .high_freq_factor = 4, .original_max_position = 8192};
  return s;
}

ModelShape tied(ModelShape s) {
  s.tied = true;
  return s;
}

ModelShape smollm2(ModelShape s, double theta) {
  s.vocabulary = 49152, s.max_sequence = 8192, s.rope_theta = theta, s.tied = true;
  return s;
}

/// Llama 2's vocabulary, with which TinyLlama was trained too.
ModelShape llama2(ModelShape s, std::int64_t context) {
  s.vocabulary = 32000, s.max_sequence = context;
  return s;
}

ModelShape of_bytes(ModelShape s, std::int64_t context) {
  s.vocabulary = 257, s.max_sequence = context;
  return s;
}

ModelShape shape(std::int64_t width, std::int64_t layers, std::int64_t heads, std::int64_t kv_heads, std::int64_t hidden) {
  return {.family = "llama",
          .width = width,
          .layers = layers,
          .heads = heads,
          .kv_heads = kv_heads,
          .head_dim = width / heads,
          .hidden = hidden};
}

}  // namespace

// Sources: the published config.json files; Touvron et al. 2023, table 2; Grattafiori et al. 2024, table 3; Zhang et al. 2024, "TinyLlama".
std::vector<ModelSize> llama_sizes() {
  return {{"llama-tiny", of_bytes(shape(256, 6, 4, 2, 1024), 1024)},
          {"llama-small", of_bytes(shape(384, 8, 6, 2, 1024), 2048)},
          {"llama-2-7b", llama2(shape(4096, 32, 32, 32, 11008), 4096)},
          {"llama-2-13b", llama2(shape(5120, 40, 40, 40, 13824), 4096)},
          {"llama-3-8b", llama3(shape(4096, 32, 32, 8, 14336))},
          {"llama-3.1-8b", llama3(shape(4096, 32, 32, 8, 14336), 8)},
          {"llama-3.2-1b", tied(llama3(shape(2048, 16, 32, 8, 8192), 32))},
          {"llama-3.2-3b", tied(llama3(shape(3072, 28, 24, 8, 8192), 32))},
          {"tinyllama-1.1b", llama2(shape(2048, 22, 32, 4, 5632), 2048)},
          {"smollm2-135m", smollm2(shape(576, 30, 9, 3, 1536), 100000)},
          {"smollm2-360m", smollm2(shape(960, 32, 15, 5, 2560), 100000)},
          {"smollm2-1.7b", smollm2(shape(2048, 24, 32, 32, 8192), 130000)}};
}

void require_whole_heads(const ModelShape& s) {
  if (s.width % s.heads != 0) throw ConfigError(format("model.width = {} must be a multiple of model.heads = {}", s.width, s.heads));
}

namespace {

nn::Experts::Config experts_of(const ModelShape& s, std::int64_t layer, double out_deviation, nn::ExpertExchange& exchange) {
  const ExpertsShape& e = s.experts;
  return {.width = s.width,
          .hidden = e.width,
          .number = e.number,
          .shared = e.shared * e.width,
          .layer = e.layers_before(layer),
          .routing = e.routing(),
          .limit = float(e.limit),
          .out_deviation = out_deviation,
          .exchange = &exchange};
}

nn::LatentConfig latent_of(const ModelShape& s) {
  const LatentShape& l = s.latent;
  return {.kv_rank = l.rank,
          .q_rank = l.query_rank,
          .turned = l.turned,
          .value_dim = l.value_width,
          .pairs = l.pairs,
          .score_factor = s.rope_scaling ? float(ops::rope_score_factor(*s.rope_scaling)) : 1};
}

}  // namespace

namespace {

template <class Block>
std::unique_ptr<Model> make(const ModelShape& s, const nn::GatedBlock::Config& c, const LlamaVariant& variant, double out_deviation,
                            const ModelOptions& options, scaling::Precision& precision) {
  const auto block_of = [&](std::int64_t layer) {
    typename Block::Config config{.attention = c.attention, .mlp = c.mlp, .norm = c.norm, .end = c.end};
    config.attention.rope = s.turns(layer);
    if (s.experts.in_layer(layer)) config.mlp.experts = experts_of(s, layer, out_deviation, *options.experts);
    return config;
  };
  return std::make_unique<Transformer<Block, nn::RmsNorm>>(s, block_of, variant.norm_offset, 0, options, precision);
}

float score_factor(const ModelShape& s) {
  return s.multipliers.scores > 0 ? float(s.multipliers.scores * std::sqrt(double(s.head_dim))) : 1;
}

}  // namespace

std::unique_ptr<Model> make_llama_like(const ModelShape& s, const LlamaVariant& variant, const ModelOptions& options,
                                       scaling::Precision& precision) {
  // Output projections start smaller with depth, so that the residual stream's variance does not grow. Source: Radford et al. 2019.
  const double out = 0.02 / std::sqrt(2.0 * double(s.layers));
  using Norms = LlamaVariant::Norms;
  const nn::NormConfig norm(s.norm_eps, variant.norm_offset);
  const bool has_norms = variant.head_norms || variant.norms_of_all_heads;
  const nn::GatedBlock::Config block{
      .attention = {.width = s.width,
                    .heads = s.heads,
                    .kv_heads = s.kv_heads,
                    .head_dim = s.head_dim,
                    .qkv_bias = variant.qkv_bias || s.biases.attention,
                    .out_bias = s.biases.attention,
                    .score_factor = score_factor(s),
                    .out_deviation = out,
                    .head_norm_eps = has_norms ? std::optional(s.norm_eps) : std::nullopt,
                    .head_norm_offset = variant.norm_offset,
                    .norms_of_all_heads = variant.norms_of_all_heads,
                    .clip = s.clip_qkv,
                    .latent = latent_of(s)},
      .mlp = {.dense = {.width = s.width, .hidden = s.hidden, .bias = s.biases.mlp, .activation = {variant.gate}, .out_deviation = out}},
      .norm = norm,
      .end = {.factor = s.multipliers.branch, .normed = variant.norms != Norms::before, .norm = norm}};
  if (variant.norms == Norms::after) return make<nn::UnnormedBlock>(s, block, variant, out, options, precision);
  return make<nn::GatedBlock>(s, block, variant, out, options, precision);
}

std::unique_ptr<Model> make_llama(const ModelShape& s, const ModelOptions& options, scaling::Precision& precision) {
  require_whole_heads(s);
  return make_llama_like(s, {}, options, precision);
}

}  // namespace octet::models
