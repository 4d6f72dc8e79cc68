#pragma once

#include "octet/numerics/philox.hpp"
#include "octet/ops/adapter_blocks/adapter_blocks.math.hpp"
#include "octet/ops/dropout/dropout.hpp"

namespace octet::ops {

/// The draws of a matrix, as kernels get them. Four neighbouring columns of the whole matrix are of one counter.
struct DropoutMask {
  std::uint64_t key;
  std::uint32_t least;  // a smaller word drops its value
  float factor;
  std::int64_t tokens, first_token, all_tokens, columns, first_column, sequence;
  SequencePart part;
  bool accumulate;
  std::int64_t token_stride, column_stride;  // of values in memory

  explicit DropoutMask(const Dropout& d)
      : key(d.key),
        least(std::uint32_t(d.probability * 0x1p32)),
        factor(float(1 / (1 - d.probability))),
        tokens(d.x.shape[d.tokens_last ? 1 : 0]),
        first_token(tokens * d.member),
        all_tokens(tokens * d.members),
        columns(d.x.shape[d.tokens_last ? 0 : 1]),
        first_column(d.first_column),
        sequence(d.sequence),
        part(d.part),
        accumulate(d.accumulate),
        token_stride(d.tokens_last ? 1 : columns),
        column_stride(d.tokens_last ? tokens : 1) {}

  /// Counters of a token.
  OCTET_HD std::int64_t counters() const { return (first_column % 4 + columns + 3) / 4; }
  /// The number in its step of the token of a row.
  OCTET_HD std::int64_t token(std::int64_t row, const std::int64_t* numbers) const {
    const std::int64_t whole = part ? part.whole : sequence, before = numbers[dropout_batch] * (all_tokens / sequence);
    const std::int64_t t = first_token + row;
    return (before + t / sequence) * whole + part.place(t % sequence, sequence);
  }
};

/// The values of counter `i` of token `t`.
template <class T>
OCTET_HD void drop(const DropoutMask& m, const std::int64_t* numbers, const T* x, T* y, std::int64_t t, std::int64_t i) {
  const std::int64_t quad = m.first_column / 4 + i;
  const RandomWords words = philox(m.key ^ std::uint64_t(numbers[dropout_seed]), std::uint64_t(m.token(t, numbers)),
                                   std::uint64_t(numbers[dropout_update]) << 24 | std::uint64_t(quad));
#ifdef __CUDACC__
#pragma unroll
#endif
  for (int j = 0; j < 4; ++j) {
    const std::int64_t c = 4 * quad + j - m.first_column;
    if (c < 0 || c >= m.columns) continue;
    const std::int64_t at = t * m.token_stride + c * m.column_stride;
    const float value = words.w[j] >= m.least ? m.factor * float_of_value(x[at]) : 0.0f;
    y[at] = from_float<T>(m.accumulate ? float_of_value(y[at]) + value : value);
  }
}

}  // namespace octet::ops
