#pragma once

#include "octet/ops/attention/attention.hpp"
#include "octet/tensor/backend.hpp"

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

}  // namespace octet::cpu

namespace octet::cuda {
/// Bytes of workspace that attention needs on a GPU.
std::int64_t attention_workspace_bytes(const ops::QkvShape&, std::int64_t tokens, bool backward);
}  // namespace octet::cuda

OCTET_KERNEL(attention_forward, const ops::AttentionForward&, const Tensor& workspace)
OCTET_KERNEL(attention_backward, const ops::AttentionBackward&, const Tensor& workspace)
