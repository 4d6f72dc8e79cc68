#include "octet/models/deepseek_v3/deepseek_v3.hpp"

#include "octet/models/deepseek_v2/deepseek_v2.hpp"
#include "octet/models/llama/llama.hpp"

namespace octet::models {
namespace {

ExpertsShape experts(std::int64_t number, std::int64_t chosen, std::int64_t width, std::int64_t shared, double scaling) {
  return {.number = number,
          .chosen = chosen,
          .width = width,
          .shared = shared,
          .score = ops::Routing::Score::sigmoid,
          .normalize = true,
          .scaling = scaling,
          .biased = true,
          .balance = {.over = nn::Balance::Over::sequence, .loss = 1e-4, .bias_rate = 0.001},
          .first_dense = 1};
}

ModelShape tiny() {
  ModelShape s{.family = "deepseek_v3", .width = 256, .layers = 4, .heads = 4, .kv_heads = 4, .head_dim = 48, .hidden = 512};
  s.vocabulary = 257, s.max_sequence = 1024, s.norm_eps = 1e-6, s.experts = experts(8, 2, 128, 1, 2.5);
  s.experts.groups = 4, s.experts.kept_groups = 2;
  s.latent = {.rank = 64, .query_rank = 96, .turned = 16, .value_width = 32};
  return s;
}

ModelShape moonlight() {
  ModelShape s{.family = "deepseek_v3", .width = 2048, .layers = 27, .heads = 16, .hidden = 11264};
  s.vocabulary = 163840, s.max_sequence = 8192, s.norm_eps = 1e-5, s.rope_theta = 50000;
  s.experts = experts(64, 6, 1408, 2, 2.446);
  return with_deepseek_heads(s, 0);
}

ModelShape v3() {
  ModelShape s{.family = "deepseek_v3", .width = 7168, .layers = 61, .heads = 128, .hidden = 18432};
  s.vocabulary = 129280, s.max_sequence = 163840, s.norm_eps = 1e-6, s.rope_scaling = deepseek_yarn(1);
  s.experts = experts(256, 8, 2048, 1, 2.5);
  s.experts.groups = 8, s.experts.kept_groups = 4, s.experts.first_dense = 3;
  return with_deepseek_heads(s, 1536);
}

}  // namespace

// Sources: DeepSeek-AI 2024, section 4.2, and the published config.json files. Without the module that predicts a second token.
std::vector<ModelSize> deepseek_v3_sizes() {
  return {{"deepseek-v3-tiny", tiny()}, {"moonlight-16b-a3b", moonlight()}, {"deepseek-v3", v3()}};
}

std::unique_ptr<Model> make_deepseek_v3(const ModelShape& s, const ModelOptions& options, scaling::Precision& precision) {
  return make_llama_like(s, {}, options, precision);
}

}  // namespace octet::models
