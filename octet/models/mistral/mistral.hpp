#pragma once

#include "octet/models/registry.hpp"

namespace octet::models {

/// Llama's model with a head's width of its own; layers may attend within a window. Source: Jiang et al. 2023, "Mistral 7B".
std::vector<ModelSize> mistral_sizes();
std::unique_ptr<Model> make_mistral(const ModelShape&, const ModelOptions&, scaling::Precision&);

}  // namespace octet::models
