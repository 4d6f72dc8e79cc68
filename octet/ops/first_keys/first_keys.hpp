#pragma once

#include "octet/tensor/sequence_part.hpp"
#include "octet/tensor/stream.hpp"

namespace octet::ops {

/// The first place that each token reads if attention sees the last `window` tokens, the token itself among them:
///   keys[t] = max(starts[t], p - window + 1)    p: t's place in its sequence
/// starts: i32 [T], document_starts (attention/documents.hpp), or empty: 0. keys: i32 [T], which attention takes as document_starts. The T
/// tokens are rows of sequences with `sequence` rows here, of the whole ones or of `part`.
struct FirstKeys {
  Tensor starts;
  std::int64_t window = 0, sequence = 0;
  SequencePart part = {};
  Tensor keys;
};
/// Throws ContractError on other shapes or dtypes, and unless window and sequence are at least 1.
void first_keys(Stream&, const FirstKeys&);

}  // namespace octet::ops
