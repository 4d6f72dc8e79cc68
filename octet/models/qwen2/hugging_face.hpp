#pragma once

#include "octet/models/hugging_face_format.hpp"

namespace octet::models {

/// Qwen2ForCausalLM, of Qwen2 and Qwen2.5. Source: transformers 4.57 and 5.23.
HuggingFaceFormat qwen2_hugging_face();

/// Throws DataError when a layer attends within a window. Published files carry a sliding window that use_sliding_window turns off, or that
/// begins above the last layer.
void refuse_sliding_window(const json::Fields& config, std::int64_t layers);
/// The keys that say that no layer does.
void write_full_attention(const ModelShape&, json::Value& config);

}  // namespace octet::models
