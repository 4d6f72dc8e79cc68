#pragma once

#include "octet/tensor/sequence_part.hpp"
#include "octet/tensor/stream.hpp"

namespace octet::ops {

/// Indices of Dropout::numbers.
inline constexpr int dropout_seed = 0, dropout_update = 1, dropout_batch = 2, dropout_numbers = 3;

/// y = m x / (1 - p), or y += of it; m is 1 with probability 1 - p, else 0. One rounding.
///
/// m is a function of (seed, update, key, token, column) alone: word c % 4 of philox(key ^ seed, token, update << 24 | c / 4) is at least
/// p 2^32. `token` counts the tokens of a step, and c the columns of the whole matrix. So backward, a replayed graph, a resumed run and
/// ranks with other parts of a step or of the columns get the same m. Source: Srivastava et al. 2014, "Dropout".
struct Dropout {
  Tensor x;  // f32, bf16 or f16: [T, C], or [C, T] with tokens_last
  Tensor y;  // the same shape and type; may be x
  bool tokens_last = false;
  bool accumulate = false;
  double probability = 0;  // p, in [0, 1)
  std::uint64_t key = 0;   // of the draws of this matrix
  Tensor numbers;  // i64 [3] in the device's memory: seed, updates before this one, number of the tokens of all members among equal ones
  std::int64_t sequence = 0;      // tokens that each sequence has here; those of all members are a multiple
  SequencePart part = {};         // of each sequence that is here
  std::int64_t first_column = 0;  // of these C in the whole matrix
  int member = 0, members = 1;    // of equal parts of the rows of all sequences here, in their order: these T are those of one member
};
/// Throws ContractError on other shapes, dtypes or probabilities.
void dropout(Stream&, const Dropout&);

}  // namespace octet::ops
