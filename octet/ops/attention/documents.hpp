#pragma once

#include "octet/tensor/sequence_part.hpp"
#include "octet/tensor/stream.hpp"

namespace octet::ops {

/// Documents that are packed into sequences are described by i32 [T]: starts[t] is the place in its sequence of the first token of t's
/// document, 0 where the document began in an earlier sequence. An empty tensor: nothing separates documents.
/// Throws ContractError, in the name of `op`, on another shape or dtype, and on a CPU unless 0 <= starts[t] <= t mod `sequence` and starts
/// do not decrease within a sequence. Of a part of each sequence with `sequence` rows, t's place in the whole sequence takes that of
/// t mod `sequence`. On a GPU the caller answers for the values.
void check_document_starts(const char* op, const Stream&, const Tensor& starts, std::int64_t tokens, std::int64_t sequence,
                           const SequencePart& part = {});

}  // namespace octet::ops
