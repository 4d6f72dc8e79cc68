#pragma once

#include "octet/ops/embedding/embedding.hpp"
#include "octet/tensor/backend.hpp"

namespace octet::ops {

/// Workspace of the token lists per id: per id its count and beginning, per token three elements, per long list one, and two counts.
inline std::int64_t embedding_list_words(std::int64_t vocabulary, std::int64_t tokens) { return 2 + 2 * vocabulary + 4 * tokens; }

/// Whether tokens of one place in their sequences have different positions, or some of them none.
inline bool lists_positions(const EmbeddingBackward& a) {
  return a.dpositions && (a.document_starts || a.part || a.rows.all > a.dtable.shape[0]);
}

}  // namespace octet::ops

OCTET_KERNEL(embedding_forward, const ops::EmbeddingForward&)
/// `lists`: i32, place for ops::embedding_list_words() of tokens on a GPU, else empty. With lists_positions(), place for T
/// positions and for their lists follows.
OCTET_KERNEL(embedding_backward, const ops::EmbeddingBackward&, const Tensor& lists)
