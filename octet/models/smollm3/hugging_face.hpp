#pragma once

#include "octet/models/hugging_face_format.hpp"

namespace octet::models {

/// SmolLM3ForCausalLM. Source: transformers 5.24.
HuggingFaceFormat smollm3_hugging_face();

}  // namespace octet::models
