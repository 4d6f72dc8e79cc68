#pragma once

#include "octet/models/registry.hpp"
#include "octet/nn/block.hpp"

namespace octet::models {

/// RMSNorm, rotary positions, grouped heads, SwiGLU, no biases. Source: Touvron et al. 2023; Llama 3: Grattafiori et al. 2024.
std::vector<ModelSize> llama_sizes();
std::unique_ptr<Model> make_llama(const ModelShape&, const ModelOptions&, scaling::Precision&);

/// The same block with or without biases on queries, keys and values, for families that differ in that alone.
std::unique_ptr<Model> make_llama_like(const ModelShape&, bool qkv_bias, const ModelOptions&, scaling::Precision&);

}  // namespace octet::models
