#pragma once

#include "octet/models/hugging_face_format.hpp"

namespace octet::models {

/// GraniteForCausalLM. Source: transformers 5.24.
HuggingFaceFormat granite_hugging_face();

}  // namespace octet::models
