#pragma once

#include "octet/models/registry.hpp"

namespace octet::models {

std::vector<ModelSize> gpt2_sizes();
std::unique_ptr<Model> make_gpt2(const ModelShape&, const ModelOptions&, scaling::Precision&);

}  // namespace octet::models
