#pragma once

#include "octet/models/hugging_face_format.hpp"
#include "octet/models/llama/llama.hpp"

namespace octet::models {

/// LlamaForCausalLM. Source: transformers 4.57 and 5.23, whose two ways to write the rotation's parameters are both read.
HuggingFaceFormat llama_hugging_face();

/// In what families with Llama's keys differ.
struct LlamaKeys {
  std::int64_t head_dim = 0;  // where config.json is silent; 0: hidden_size / num_attention_heads, an integer
  bool fixed = false;         // its head_dim says something else
  double norm_eps = 1e-6;     // where it is silent
  const char *activation_key = "hidden_act", *activation = "silu";
};
/// Shared by families with Llama's keys of config.json and tensor names.
ModelShape read_llama_like(std::string_view family, const json::Fields& config, const LlamaKeys& = {});
void write_llama_like(const ModelShape&, json::Value& config, const LlamaKeys& = {});
/// Which of the keys attention_bias and mlp_bias a family has.
enum class BiasKeys : std::uint8_t { none, attention, both };
/// Reads those keys. Throws DataError unless the others are false or missing.
void read_biases(const json::Fields& config, BiasKeys, ModelShape&);
void write_biases(const ModelShape&, BiasKeys, json::Value& config);

/// Names of the tensors of a layer with experts, below "model.layers.N.".
struct ExpertNames {
  const char *router = "mlp.gate.weight", *experts = "mlp.experts.", *gate = "gate_proj", *up = "up_proj", *down = "down_proj";
  const char *bias = "mlp.gate.e_score_correction_bias", *shared = "mlp.shared_experts.";
};
std::vector<WeightSlice> llama_like_weights(const ModelShape&, const LlamaVariant&, const ExpertNames& = {});

}  // namespace octet::models
