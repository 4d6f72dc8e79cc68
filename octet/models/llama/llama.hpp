#pragma once

#include "octet/models/registry.hpp"
#include "octet/nn/block.hpp"

namespace octet::models {

/// RMSNorm, rotary positions, grouped heads, SwiGLU, no biases. Source: Touvron et al. 2023; Llama 3: Grattafiori et al. 2024.
std::vector<ModelSize> llama_sizes();
std::unique_ptr<Model> make_llama(const ModelShape&, const ModelOptions&, scaling::Precision&);

/// Throws ConfigError unless the width is a multiple of the heads. Octet does not need this, but transformers loads no other shape of some
/// families, and trained weights must be exportable.
void require_whole_heads(const ModelShape&);

/// In what families with Llama's block differ from Llama.
struct LlamaVariant {
  bool qkv_bias = false;            // biases on queries, keys and values
  bool head_norms = false;          // RMSNorm of each query and key head before its rotation
  bool norms_of_all_heads = false;  // instead: one of all query heads, and one of all key heads
  enum class Norms : std::uint8_t { before, after, around } norms = Norms::before;  // of a block's branches
  float norm_offset = 0;                                                            // nn::NormConfig, of every norm
  ops::Gate gate = ops::Gate::silu;                                                 // of the MLP
};
std::unique_ptr<Model> make_llama_like(const ModelShape&, const LlamaVariant&, const ModelOptions&, scaling::Precision&);

}  // namespace octet::models
