#pragma once

#include "octet/models/registry.hpp"

namespace octet::models {

/// Llama's block with experts, of which two are chosen; their weights have the sum 1. Source: Jiang et al. 2024, "Mixtral of Experts".
std::vector<ModelSize> mixtral_sizes();
std::unique_ptr<Model> make_mixtral(const ModelShape&, const ModelOptions&, scaling::Precision&);

}  // namespace octet::models
