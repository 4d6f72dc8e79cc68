#include "octet/ops/most_likely/most_likely.hpp"

#include "octet/ops/most_likely/most_likely.kernels.hpp"

namespace octet::ops {

void most_likely(Stream& stream, const MostLikely& a) {
  check(a.logits.shape.rank == 2 && is_activation(a.logits.dtype), "most_likely: logits must be [T, V] of f32, bf16 or f16, got {} {}",
        a.logits.dtype, a.logits.shape);
  check(a.vocabulary >= 1 && a.vocabulary <= a.logits.shape[1], "most_likely: a vocabulary of {} tokens, and logits have {} columns",
        a.vocabulary, a.logits.shape[1]);
  check(a.ids.shape == Shape{a.logits.shape[0]} && a.ids.dtype == DType::i32, "most_likely: ids must be i32 [{}], got {} {}",
        a.logits.shape[0], a.ids.dtype, a.ids.shape);
  stream.count({.ops = 1, .bytes = double(a.logits.bytes() + a.ids.bytes())});
  OCTET_LAUNCH(stream, most_likely, a);
}

}  // namespace octet::ops
