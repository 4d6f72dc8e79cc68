#pragma once

#include "octet/models/registry.hpp"

namespace octet::models {

/// Llama's block with many small experts, of which some are shared by all tokens, after dense first blocks. Attention has grouped heads:
/// the published models' latent attention is not built, so there is no Hugging Face format. Sources: Dai et al. 2024, "DeepSeekMoE";
/// DeepSeek-AI 2024, "DeepSeek-V2", appendix B.
std::vector<ModelSize> deepseek_moe_sizes();
std::unique_ptr<Model> make_deepseek_moe(const ModelShape&, const ModelOptions&, scaling::Precision&);

}  // namespace octet::models
