#pragma once

#include "octet/models/hugging_face_format.hpp"

namespace octet::models {

/// Qwen2ForCausalLM, of Qwen2 and Qwen2.5. Source: transformers 4.57 and 5.23.
HuggingFaceFormat qwen2_hugging_face();

}  // namespace octet::models
