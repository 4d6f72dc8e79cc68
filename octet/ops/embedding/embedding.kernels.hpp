#pragma once

#include "octet/ops/embedding/embedding.hpp"
#include "octet/tensor/cpu/isa.hpp"

namespace octet::cpu {
OCTET_KERNEL(void embedding_forward(const ops::EmbeddingForward&))
OCTET_KERNEL(void embedding_backward(const ops::EmbeddingBackward&))
}  // namespace octet::cpu
