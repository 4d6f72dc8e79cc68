#include "octet/models/qwen2/qwen2.hpp"

#include "octet/models/llama/llama.hpp"

namespace octet::models {

// Source: Qwen2.5 technical report (Yang et al. 2024), table 1, and the published config.json files.
std::vector<ModelSize> qwen2_sizes() {
  ModelShape tiny{.family = "qwen2",
                  .width = 256,
                  .layers = 6,
                  .heads = 4,
                  .kv_heads = 2,
                  .head_dim = 64,
                  .hidden = 1024,
                  .vocabulary = 257,
                  .max_sequence = 1024,
                  .norm_eps = 1e-6,
                  .rope_theta = 1e6,
                  .tied = true};
  ModelShape b05{.family = "qwen2",
                 .width = 896,
                 .layers = 24,
                 .heads = 14,
                 .kv_heads = 2,
                 .head_dim = 64,
                 .hidden = 4864,
                 .vocabulary = 151936,
                 .max_sequence = 32768,
                 .norm_eps = 1e-6,
                 .rope_theta = 1e6,
                 .tied = true};
  ModelShape b15 = b05;
  b15.width = 1536, b15.layers = 28, b15.heads = 12, b15.head_dim = 128, b15.hidden = 8960, b15.max_sequence = 131072;
  ModelShape b7{.family = "qwen2",
                .width = 3584,
                .layers = 28,
                .heads = 28,
                .kv_heads = 4,
                .head_dim = 128,
                .hidden = 18944,
                .vocabulary = 152064,
                .max_sequence = 131072,
                .norm_eps = 1e-6,
                .rope_theta = 1e6};
  return {{"qwen2-tiny", tiny}, {"qwen2.5-0.5b", b05}, {"qwen2.5-1.5b", b15}, {"qwen2.5-7b", b7}};
}

std::unique_ptr<Model> make_qwen2(const ModelShape& s, const ModelOptions& options, scaling::Precision& precision) {
  return make_llama_like(s, true, options, precision);
}

}  // namespace octet::models
