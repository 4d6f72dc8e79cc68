#pragma once

#include "octet/models/hugging_face_format.hpp"

namespace octet::models {

/// Qwen3ForCausalLM. Source: transformers 4.57 and 5.23.
HuggingFaceFormat qwen3_hugging_face();

}  // namespace octet::models
