#pragma once

#include "octet/ops/attention/attention.hpp"
#include "octet/tensor/cpu/isa.hpp"

namespace octet::cpu {

/// How the CPU divides attention. Query rows and keys are taken in blocks of `block`, which is a multiple of the widest register and of
/// the rows that multiply.hpp computes at once; head columns are padded to `padding`, so that no loop has a rest.
struct AttentionBlocks {
  static constexpr std::int64_t block = 48, padding = 16;

  std::int64_t dim;      // columns of a head, padded
  std::int64_t keys;     // keys of a sequence, padded to whole blocks
  std::int64_t scores;   // floats between two rows of scores: off a power of two, whose rows would share cache lines

  explicit AttentionBlocks(const ops::QkvShape& s)
      : dim(round_up(s.head_dim, padding)), keys(round_up(s.sequence, block)), scores(keys + padding) {}

  /// Floats of scratch that one thread needs.
  std::int64_t forward_floats() const { return 2 * keys * dim + 2 * block * dim + block * scores; }
  std::int64_t backward_floats() const { return 5 * keys * dim + 3 * block * dim + 2 * block * block + 2 * block; }
};

OCTET_KERNEL(void attention_forward(const ops::AttentionForward&, float* scratch_of_threads))
OCTET_KERNEL(void attention_backward(const ops::AttentionBackward&, float* scratch_of_threads))

}  // namespace octet::cpu
