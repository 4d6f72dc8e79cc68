#pragma once

#include "octet/tensor/stream.hpp"

namespace octet::ops {

/// The most likely token of each row of logits, the first one of equals: ids[t] = the least c with logits[t, c] = max_i logits[t, i], over
/// the first `vocabulary` columns; -1 where one of these is NaN or infinite. logits: [T, V], V >= vocabulary, f32, bf16 or f16; ids: i32
/// [T].
struct MostLikely {
  Tensor logits;
  std::int64_t vocabulary = 0;
  Tensor ids;
};
/// Throws ContractError on other shapes or dtypes, and unless the vocabulary is 1 or more.
void most_likely(Stream&, const MostLikely&);

}  // namespace octet::ops
