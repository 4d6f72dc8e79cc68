#pragma once

#include "octet/models/hugging_face_format.hpp"

namespace octet::models {

/// GPT2LMHeadModel. Its linear weights are stored as [in, out]. Source: transformers 4.57 and 5.23.
HuggingFaceFormat gpt2_hugging_face();

}  // namespace octet::models
