#pragma once

#include "octet/ops/embedding/embedding.hpp"
#include "octet/tensor/backend.hpp"

namespace octet::ops {

/// Workspace of the token lists per id: per id its count and beginning, per token three elements, per long list one, and two counts.
inline std::int64_t embedding_list_words(std::int64_t vocabulary, std::int64_t tokens) { return 2 + 2 * vocabulary + 4 * tokens; }

}  // namespace octet::ops

OCTET_KERNEL(embedding_forward, const ops::EmbeddingForward&)
/// `lists`: i32, place for ops::embedding_list_words() of tokens on a GPU, else empty. With dpositions and document_starts, place for T
/// positions and for their lists follows.
OCTET_KERNEL(embedding_backward, const ops::EmbeddingBackward&, const Tensor& lists)
