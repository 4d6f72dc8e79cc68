#pragma once

#include <array>
#include <bit>
#include <string>

#include "octet/ops/attention/attention.hpp"
#include "octet/ops/quantize/spec.hpp"
#include "octet/tensor/backend.hpp"

namespace octet::cpu {

/// Query rows in one block of places in a sequence: rows [begin, end) of the block from place `first` on, of which the first is row `row`
/// of those that the sequence has here.
struct QueryBlock {
  std::int64_t first, begin, end, row;
  OCTET_HD std::int64_t rows() const { return end - begin; }
};

/// How the CPU divides attention. Query rows and keys are processed in blocks of `block`, which is a multiple of the widest register and of
/// the rows that multiply.hpp computes at once; head columns are padded to `padding`, so that no loop has a remainder.
struct AttentionBlocks {
  static constexpr std::int64_t block = 48, padding = 16;

  std::int64_t dim;     // columns of a query or key head, padded
  std::int64_t values;  // and of a value head
  std::int64_t keys;    // keys of a sequence, padded to whole blocks
  std::int64_t scores;  // floats between two rows of scores: off a power of two, whose rows would share cache lines

  explicit AttentionBlocks(const ops::QkvShape& s)
      : dim(round_up(s.head_dim, padding)),
        values(round_up(s.value_dim(), padding)),
        keys(round_up(s.whole(), block)),
        scores(keys + padding) {}

  /// Blocks with query rows, of all places or of both segments of a part: block i, in ascending order of places.
  OCTET_HD static std::int64_t query_blocks(const ops::QkvShape& s) {
    if (!s.part) return blocks_of(0, s.sequence);
    return blocks_of(s.part.first, s.sequence / 2) + blocks_of(s.part.second, s.sequence / 2);
  }
  OCTET_HD static QueryBlock query_block(const ops::QkvShape& s, std::int64_t i) {
    if (!s.part) return block_at(0, s.sequence, i, 0);
    const std::int64_t segment = s.sequence / 2, n = blocks_of(s.part.first, segment);
    return i < n ? block_at(s.part.first, segment, i, 0) : block_at(s.part.second, segment, i - n, segment);
  }

  /// Floats of scratch that one thread needs.
  std::int64_t forward_floats() const { return (keys + block) * (dim + values) + block * scores; }
  std::int64_t backward_floats() const {
    return keys * (3 * dim + 2 * values) + block * (2 * dim + values) + 2 * block * block + 2 * block;
  }

 private:
  // Of n places from `place` on, whose first is row `row`.
  OCTET_HD static std::int64_t blocks_of(std::int64_t place, std::int64_t n) { return ceil_div(place + n, block) - place / block; }
  OCTET_HD static QueryBlock block_at(std::int64_t place, std::int64_t n, std::int64_t i, std::int64_t row) {
    const std::int64_t first = (place / block + i) * block, end = first + block, from = place > first ? place : first,
                       to = place + n < end ? place + n : end;
    return {first, from - first, to - first, row + from - place};
  }
};

}  // namespace octet::cpu

namespace octet::cuda {

/// The problem that decides the kernels of attention on a GPU and their workspace.
struct AttentionProblem {
  ops::QkvShape heads;
  std::int64_t tokens = 0;
  DType dtype = DType::bf16;
  bool documents = false;  // attention ends at their borders
  int segments() const { return heads.part ? 2 : 1; }
  friend auto operator<=>(const AttentionProblem& a, const AttentionProblem& b) { return a.key() <=> b.key(); }
  friend bool operator==(const AttentionProblem& a, const AttentionProblem& b) { return a.key() == b.key(); }

 private:
  std::array<std::int64_t, 12> key() const {
    return {heads.heads,    heads.kv_heads,      heads.head_dim,   heads.value_dim(),
            heads.sequence, heads.part.whole,    heads.part.first, heads.part.second,
            tokens,         std::int64_t(dtype), documents,        std::bit_cast<std::int32_t>(heads.score_factor)};
  }
};

template <class Args>
AttentionProblem problem_of(const Args& a) {
  return {.heads = a.heads, .tokens = a.qkv.shape[0], .dtype = a.qkv.dtype, .documents = bool(a.document_starts)};
}

/// Forward, or one of the two kinds of backward.
enum class AttentionPass : std::uint8_t { forward, backward, deterministic_backward };

/// Bytes of workspace of attention on this machine's GPU.
std::int64_t attention_workspace_bytes(const AttentionProblem&, AttentionPass);
/// Of it, with two segments of queries, the gradients of keys from the first one, like dkeys.
std::int64_t first_gradient_bytes(const AttentionProblem&);
/// An upper estimate of it for an absent GPU. Octet's own kernels: delta, f32 [H, T]. cuDNN's (measured with 9.19 on an H100, plus 64 KiB):
/// backward that sum, the gradient of q in f32, and those of k and v for every query head in bf16; when deterministic, instead of the
/// latter, the gradients of all scores in bf16, [B, H, S, S] with S in whole tiles of 128. Of two segments of queries, the larger need, and
/// first_gradient_bytes().
std::int64_t attention_workspace_estimate(const AttentionProblem&, AttentionPass);

/// Attention by Octet's own kernels: any head_dim up to 512, up to 65,535 sequences, f32, bf16 or f16, the same bits in every run. `delta`:
/// scratch, f32 [H, T]. Throw DeviceError on more.
void plain_attention_forward(Queue, const ops::AttentionForward&);
void plain_attention_backward(Queue, const ops::AttentionBackward&, float* delta);

/// cuDNN's version, such as "9.19.0", or the reason why it is not used.
std::string attention_library();

}  // namespace octet::cuda

OCTET_KERNEL(attention_forward, const ops::AttentionForward&, const Tensor& workspace)
OCTET_KERNEL(attention_backward, const ops::AttentionBackward&, const Tensor& workspace)
/// On a CPU: the same, where products read probabilities, and in backward also their gradients, through codes with known scales.
OCTET_KERNEL(emulated_attention_forward, const ops::AttentionForward&, const ops::QuantizeSpec& p, const Tensor& workspace)
OCTET_KERNEL(emulated_attention_backward, const ops::AttentionBackward&, const ops::QuantizeSpec& p, const ops::QuantizeSpec& dp,
             const Tensor& workspace)
