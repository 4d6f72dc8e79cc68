#pragma once

#include "octet/models/registry.hpp"

namespace octet::models {

/// Qwen3's attention with experts instead of MLPs: softmax scores, weights of the chosen experts with the sum 1. Source: Qwen3 technical
/// report (Yang et al. 2025), section 2.
std::vector<ModelSize> qwen3_moe_sizes();
std::unique_ptr<Model> make_qwen3_moe(const ModelShape&, const ModelOptions&, scaling::Precision&);

}  // namespace octet::models
