#pragma once

#include "octet/models/registry.hpp"

namespace octet::models {

/// Llama's model whose files have one matrix of queries, keys and values and one of gate and up; layers may attend within a window. Source:
/// Abdin et al. 2024, "Phi-3 Technical Report", section 2.
std::vector<ModelSize> phi3_sizes();
std::unique_ptr<Model> make_phi3(const ModelShape&, const ModelOptions&, scaling::Precision&);

}  // namespace octet::models
