#pragma once

#include "octet/models/registry.hpp"

namespace octet::models {

/// Llama's model in which each fourth layer has no rotary positions. Source: Bakouch et al. 2025, "SmolLM3"; Yang et al. 2025, "Rope to
/// Nope and Back Again".
std::vector<ModelSize> smollm3_sizes();
std::unique_ptr<Model> make_smollm3(const ModelShape&, const ModelOptions&, scaling::Precision&);

}  // namespace octet::models
