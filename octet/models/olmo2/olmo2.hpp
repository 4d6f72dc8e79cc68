#pragma once

#include "octet/models/registry.hpp"

namespace octet::models {

/// Llama's block with norms behind attention and MLP in place of those before them, and one norm of all query heads and one of all key
/// heads. Source: OLMo Team 2024, "2 OLMo 2 Furious", section 2.
std::vector<ModelSize> olmo2_sizes();
std::unique_ptr<Model> make_olmo2(const ModelShape&, const ModelOptions&, scaling::Precision&);

}  // namespace octet::models
