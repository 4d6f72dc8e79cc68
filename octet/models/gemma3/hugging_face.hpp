#pragma once

#include "octet/models/hugging_face_format.hpp"

namespace octet::models {

/// Gemma3ForCausalLM. Source: transformers 5.24, whose two ways to write the rotations are both read.
HuggingFaceFormat gemma3_hugging_face();

}  // namespace octet::models
