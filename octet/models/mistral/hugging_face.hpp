#pragma once

#include "octet/models/hugging_face_format.hpp"

namespace octet::models {

/// MistralForCausalLM. Source: transformers 5.24.
HuggingFaceFormat mistral_hugging_face();

}  // namespace octet::models
