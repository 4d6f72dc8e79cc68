#pragma once

#include "octet/ops/embedding/embedding.hpp"
#include "octet/tensor/backend.hpp"

OCTET_KERNEL(embedding_forward, const ops::EmbeddingForward&)
/// order: i32 [T] on a GPU, where the tokens are sorted by id; empty on the CPU.
OCTET_KERNEL(embedding_backward, const ops::EmbeddingBackward&, const Tensor& order)
