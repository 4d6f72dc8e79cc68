#pragma once

#include "octet/tensor/sequence_part.hpp"
#include "octet/tensor/tensor.hpp"

namespace octet::ops {

/// The columns of a fused QKV matrix [T, (H + Hkv) d + Hkv dv]: H query heads of d columns, then Hkv key heads of as many, then Hkv value
/// heads of dv = d columns, or of `value_width`. Its rows are T = B S tokens, sequences of S tokens one after another. Query head h reads
/// key and value head h / (H / Hkv). With a part, these are S rows of each sequence of part.whole tokens.
struct QkvShape {
  std::int64_t heads = 0, kv_heads = 0;  // H, Hkv
  std::int64_t head_dim = 0;             // d
  std::int64_t sequence = 0;             // S
  SequencePart part = {};                // of each sequence that is here
  std::int64_t value_width = 0;          // columns of a value head where these are not those of a key; 0: head_dim
  float score_factor = 1;                // of scores, besides 1 / sqrt(d)

  OCTET_HD std::int64_t value_dim() const { return value_width > 0 ? value_width : head_dim; }
  /// Whether values have as many columns as keys, and scores the usual scale.
  bool is_usual() const { return value_dim() == head_dim && score_factor == 1; }
  /// Of products of a query and a key.
  OCTET_HD float scale() const { return score_factor / __builtin_sqrtf(float(head_dim)); }
  std::int64_t columns() const { return value_column(kv_heads); }
  /// Of keys and values, which are neighbours; and of the output.
  std::int64_t key_columns() const { return kv_heads * (head_dim + value_dim()); }
  std::int64_t out_columns() const { return heads * value_dim(); }
  std::int64_t group() const { return heads / kv_heads; }
  /// Tokens of a whole sequence, and the place in it of row `row` of the S that it has here.
  OCTET_HD std::int64_t whole() const { return part ? part.whole : sequence; }
  OCTET_HD std::int64_t place(std::int64_t row) const { return part.place(row, sequence); }
  std::int64_t query_column(std::int64_t head) const { return head * head_dim; }
  std::int64_t key_column(std::int64_t kv_head) const { return (heads + kv_head) * head_dim; }
  OCTET_HD std::int64_t value_column(std::int64_t kv_head) const { return (heads + kv_heads) * head_dim + kv_head * value_dim(); }
  OCTET_HD std::int64_t out_column(std::int64_t head) const { return head * value_dim(); }
};

/// Throws ContractError, in the name of `op`, unless the shape is sound (all positive, H a multiple of Hkv) and `qkv` is f32, bf16 or f16
/// [T, columns()] with T a multiple of S. A part has two segments of S / 2 tokens, the second one behind the first, both in the sequence.
void check_qkv(const char* op, const QkvShape&, const Tensor& qkv);

}  // namespace octet::ops
