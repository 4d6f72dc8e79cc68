#pragma once

#include "octet/models/registry.hpp"

namespace octet::models {

/// Latent attention with YaRN, dense first blocks, then many small experts with softmax scores, of which some are shared by all tokens.
/// Source: DeepSeek-AI 2024, "DeepSeek-V2".
std::vector<ModelSize> deepseek_v2_sizes();
std::unique_ptr<Model> make_deepseek_v2(const ModelShape&, const ModelOptions&, scaling::Precision&);

/// DeepSeek's heads: 128 columns and 64 that are rotated, values of 128, latents of 512 columns, and of so many of queries.
ModelShape with_deepseek_heads(ModelShape, std::int64_t query_rank);
/// YaRN from 4,096 to 163,840 tokens.
ops::RopeScaling deepseek_yarn(double mscale);

}  // namespace octet::models
