#pragma once

#include "octet/models/hugging_face_format.hpp"

namespace octet::models {

/// Phi3ForCausalLM. Source: transformers 5.24.
HuggingFaceFormat phi3_hugging_face();

}  // namespace octet::models
