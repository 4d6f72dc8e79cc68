#pragma once

#include "octet/models/hugging_face_format.hpp"

namespace octet::models {

/// MixtralForCausalLM. Source: transformers 5.24.
HuggingFaceFormat mixtral_hugging_face();

}  // namespace octet::models
