#include "octet/models/deepseek_v2/deepseek_v2.hpp"

#include "octet/models/llama/llama.hpp"

namespace octet::models {
namespace {

ExpertsShape experts(std::int64_t number, std::int64_t chosen, std::int64_t width, std::int64_t shared) {
  return {.number = number,
          .chosen = chosen,
          .width = width,
          .shared = shared,
          .balance = {.over = nn::Balance::Over::sequence, .loss = 0.001},
          .first_dense = 1};
}

ModelShape tiny() {
  ModelShape s{.family = "deepseek_v2", .width = 256, .layers = 4, .heads = 4, .kv_heads = 4, .head_dim = 48, .hidden = 512};
  s.vocabulary = 257, s.max_sequence = 1024, s.norm_eps = 1e-6, s.experts = experts(8, 2, 128, 1);
  s.latent = {.rank = 64, .turned = 16, .value_width = 32};
  return s;
}

}  // namespace

ModelShape with_deepseek_heads(ModelShape s, std::int64_t query_rank) {
  s.head_dim = 128 + 64, s.kv_heads = s.heads;
  s.latent = {.rank = 512, .query_rank = query_rank, .turned = 64, .value_width = 128};
  return s;
}

ops::RopeScaling deepseek_yarn(double mscale) {
  return {.kind = ops::RopeScaling::Kind::yarn,
          .factor = 40,
          .low_freq_factor = 1,
          .high_freq_factor = 32,
          .original_max_position = 4096,
          .mscale = mscale,
          .mscale_all_dim = mscale};
}

// Source: DeepSeek-AI 2024, "DeepSeek-V2", appendix B, and the published config.json.
std::vector<ModelSize> deepseek_v2_sizes() {
  ModelShape lite{.family = "deepseek_v2", .width = 2048, .layers = 27, .heads = 16, .hidden = 10944};
  lite.vocabulary = 102400, lite.max_sequence = 163840, lite.norm_eps = 1e-6, lite.experts = experts(64, 6, 1408, 2);
  lite.rope_scaling = deepseek_yarn(0.707);
  return {{"deepseek-v2-tiny", tiny()}, {"deepseek-v2-lite", with_deepseek_heads(lite, 0)}};
}

std::unique_ptr<Model> make_deepseek_v2(const ModelShape& s, const ModelOptions& options, scaling::Precision& precision) {
  require_whole_heads(s);
  return make_llama_like(s, {}, options, precision);
}

}  // namespace octet::models
