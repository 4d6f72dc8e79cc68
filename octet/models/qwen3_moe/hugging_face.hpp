#pragma once

#include "octet/models/hugging_face_format.hpp"

namespace octet::models {

/// Qwen3MoeForCausalLM. Source: transformers 5.24.
HuggingFaceFormat qwen3_moe_hugging_face();

/// The coefficient of the auxiliary loss, and the choice of experts, whose keys families share: num_experts_per_tok, norm_topk_prob,
/// router_aux_loss_coef. The number of experts and their width are read already.
void read_router(const json::Fields& config, double usual_loss, ExpertsShape&);
void write_router(const ExpertsShape&, json::Value& config);

}  // namespace octet::models
