#pragma once

#include "octet/models/registry.hpp"

namespace octet::models {

/// Llama's block with RMSNorm of every query and key head before its rotation, without biases; a head's width does not follow from the
/// model's. Source: Qwen3 technical report (Yang et al. 2025), section 2.
std::vector<ModelSize> qwen3_sizes();
std::unique_ptr<Model> make_qwen3(const ModelShape&, const ModelOptions&, scaling::Precision&);

}  // namespace octet::models
