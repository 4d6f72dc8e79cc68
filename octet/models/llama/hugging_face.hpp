#pragma once

#include "octet/models/hugging_face_format.hpp"

namespace octet::models {

/// LlamaForCausalLM. Source: transformers 4.57 and 5.23, whose two ways to write the rotation's parameters are both read.
HuggingFaceFormat llama_hugging_face();

/// Shared by families with Llama's keys of config.json and tensor names.
ModelShape read_llama_like(std::string_view family, const json::Fields& config);
void write_llama_like(const ModelShape&, json::Value& config);
std::vector<WeightSlice> llama_like_weights(const ModelShape&, bool qkv_bias);

}  // namespace octet::models
