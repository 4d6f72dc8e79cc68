#pragma once

#include "octet/tensor/sequence_part.hpp"
#include "octet/tensor/tensor.hpp"

namespace octet::ops {

/// The columns of a fused QKV matrix [T, (H + 2 Hkv) d]: H query heads of d columns, then Hkv key heads, then Hkv value heads. Its rows
/// are T = B S tokens, sequences of S tokens one after another. Query head h reads key and value head h / (H / Hkv). With a part, these
/// are S rows of each sequence of part.whole tokens.
struct QkvShape {
  std::int64_t heads = 0, kv_heads = 0;  // H, Hkv
  std::int64_t head_dim = 0;             // d
  std::int64_t sequence = 0;             // S
  SequencePart part = {};                // of each sequence that is here

  std::int64_t columns() const { return (heads + 2 * kv_heads) * head_dim; }
  std::int64_t group() const { return heads / kv_heads; }
  /// Tokens of a whole sequence, and the place in it of row `row` of the S that it has here.
  OCTET_HD std::int64_t whole() const { return part ? part.whole : sequence; }
  OCTET_HD std::int64_t place(std::int64_t row) const { return part.place(row, sequence); }
  std::int64_t query_column(std::int64_t head) const { return head * head_dim; }
  std::int64_t key_column(std::int64_t kv_head) const { return (heads + kv_head) * head_dim; }
  std::int64_t value_column(std::int64_t kv_head) const { return (heads + kv_heads + kv_head) * head_dim; }
};

/// Throws ContractError, in the name of `op`, unless the shape is sound (all positive, H a multiple of Hkv) and `qkv` is f32, bf16 or f16
/// [T, columns()] with T a multiple of S. A part has two segments of S / 2 tokens, the second one behind the first, both in the sequence.
void check_qkv(const char* op, const QkvShape&, const Tensor& qkv);

}  // namespace octet::ops
