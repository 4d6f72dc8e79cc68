#pragma once

#include "octet/models/registry.hpp"

namespace octet::models {

/// DeepSeek-V2's blocks with latents of queries, too, and a router of sigmoid scores that is balanced by a bias per expert. Sources:
/// DeepSeek-AI 2024, "DeepSeek-V3 Technical Report", section 2.1; Liu et al. 2025, "Muon is Scalable for LLM Training", for Moonlight.
std::vector<ModelSize> deepseek_v3_sizes();
std::unique_ptr<Model> make_deepseek_v3(const ModelShape&, const ModelOptions&, scaling::Precision&);

}  // namespace octet::models
