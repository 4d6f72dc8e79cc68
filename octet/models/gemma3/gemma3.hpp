#pragma once

#include "octet/models/registry.hpp"

namespace octet::models {

/// Norms before and behind attention and MLP, with weights 1 + w; GELU gates; norms of query and key heads; embeddings times the root of
/// the width; five layers with a window for each one without, and rotations of their own. Source: Gemma Team 2025, "Gemma 3 Technical
/// Report", section 2.
std::vector<ModelSize> gemma3_sizes();
std::unique_ptr<Model> make_gemma3(const ModelShape&, const ModelOptions&, scaling::Precision&);

}  // namespace octet::models
