#pragma once

#include "octet/ops/embedding/embedding.hpp"
#include "octet/tensor/backend.hpp"

OCTET_KERNEL(embedding_forward, const ops::EmbeddingForward&)
OCTET_KERNEL(embedding_backward, const ops::EmbeddingBackward&)
