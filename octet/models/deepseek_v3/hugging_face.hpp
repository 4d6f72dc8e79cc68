#pragma once

#include "octet/models/hugging_face_format.hpp"

namespace octet::models {

/// DeepseekV3ForCausalLM. Source: transformers 5.24; DeepSeek's own folders, whose weights are E4M3 codes in blocks.
HuggingFaceFormat deepseek_v3_hugging_face();

}  // namespace octet::models
