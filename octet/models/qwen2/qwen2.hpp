#pragma once

#include "octet/models/registry.hpp"

namespace octet::models {

std::vector<ModelSize> qwen2_sizes();
std::unique_ptr<Model> make_qwen2(const ModelShape&, const ModelOptions&, scaling::Precision&);

}  // namespace octet::models
