#pragma once

#include "octet/models/hugging_face_format.hpp"

namespace octet::models {

/// Olmo2ForCausalLM. Source: transformers 5.24.
HuggingFaceFormat olmo2_hugging_face();

}  // namespace octet::models
