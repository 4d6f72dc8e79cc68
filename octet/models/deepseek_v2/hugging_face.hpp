#pragma once

#include "octet/models/hugging_face_format.hpp"

namespace octet::models {

/// DeepseekV2ForCausalLM. Source: transformers 5.24.
HuggingFaceFormat deepseek_v2_hugging_face();

/// Shared by DeepSeek's families: Llama's keys, latents, experts without their scores, and the losses of their balance, which
/// transformers' configurations lack: aux_loss_alpha, per sequence unless seq_aux is false.
ModelShape read_deepseek(std::string_view family, const json::Fields& config);
void write_deepseek(const ModelShape&, json::Value& config);
std::vector<WeightSlice> deepseek_weights(const ModelShape&);

}  // namespace octet::models
