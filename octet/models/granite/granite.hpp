#pragma once

#include "octet/models/registry.hpp"

namespace octet::models {

/// Llama's model with constant factors of embeddings, branches, scores and logits. Source: Granite Team, IBM 2024, "Granite 3.0 Language
/// Models", section 2; Yang et al. 2022, "Tensor Programs V".
std::vector<ModelSize> granite_sizes();
std::unique_ptr<Model> make_granite(const ModelShape&, const ModelOptions&, scaling::Precision&);

}  // namespace octet::models
