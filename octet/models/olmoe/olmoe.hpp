#pragma once

#include "octet/models/registry.hpp"

namespace octet::models {

/// Llama's block with experts, and one norm of all query heads and one of all key heads. Source: Muennighoff et al. 2024, "OLMoE".
std::vector<ModelSize> olmoe_sizes();
std::unique_ptr<Model> make_olmoe(const ModelShape&, const ModelOptions&, scaling::Precision&);

}  // namespace octet::models
