#include "octet/ops/dropout/dropout.hpp"

#include "octet/ops/dropout/dropout.kernels.hpp"

namespace octet::ops {

void dropout(Stream& stream, const Dropout& d) {
  check(d.x.shape.rank == 2 && d.y.shape == d.x.shape, "dropout: wants two matrices of one shape, got {} and {}", d.x.shape, d.y.shape);
  check(is_activation(d.x.dtype) && d.y.dtype == d.x.dtype, "dropout: wants one of f32, bf16 and f16, got {} and {}", d.x.dtype, d.y.dtype);
  check(d.probability >= 0 && d.probability < 1, "dropout: a probability of {} is not in [0, 1)", d.probability);
  check(d.numbers && d.numbers.dtype == DType::i64 && d.numbers.shape == Shape{dropout_numbers},
        "dropout: wants numbers i64 [{}], got {} {}", dropout_numbers, d.numbers.dtype, d.numbers.shape);
  check(d.member >= 0 && d.member < d.members, "dropout: there is no member {} of {}", d.member, d.members);
  const std::int64_t tokens = d.x.shape[d.tokens_last ? 1 : 0] * d.members;
  check(d.sequence > 0 && tokens % d.sequence == 0, "dropout: {} tokens are no sequences of {}", tokens, d.sequence);
  check(d.first_column >= 0, "dropout: begins at column {}", d.first_column);
  stream.count({.ops = 1, .bytes = double(d.x.bytes()) + (d.accumulate ? 2.0 : 1.0) * double(d.y.bytes())});
  OCTET_LAUNCH(stream, dropout, d);
}

}  // namespace octet::ops
