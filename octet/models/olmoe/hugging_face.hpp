#pragma once

#include "octet/models/hugging_face_format.hpp"

namespace octet::models {

/// OlmoeForCausalLM. Source: transformers 5.24.
HuggingFaceFormat olmoe_hugging_face();

}  // namespace octet::models
