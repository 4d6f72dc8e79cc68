#pragma once

#include "octet/tensor/tensor.hpp"

namespace octet::ops {

/// The columns of a fused QKV matrix [T, (H + 2 Hkv) d]: H query heads of d columns, then Hkv key heads, then Hkv value heads. Its rows
/// are T = B S tokens, sequences of S tokens one after another. Query head h reads key and value head h / (H / Hkv).
struct QkvShape {
  std::int64_t heads = 0, kv_heads = 0;  // H, Hkv
  std::int64_t head_dim = 0;             // d
  std::int64_t sequence = 0;             // S

  std::int64_t columns() const { return (heads + 2 * kv_heads) * head_dim; }
  std::int64_t group() const { return heads / kv_heads; }
  std::int64_t query_column(std::int64_t head) const { return head * head_dim; }
  std::int64_t key_column(std::int64_t kv_head) const { return (heads + kv_head) * head_dim; }
  std::int64_t value_column(std::int64_t kv_head) const { return (heads + kv_heads + kv_head) * head_dim; }
};

/// Throws ContractError, in the name of `op`, unless the shape is sound (all positive, H a multiple of Hkv) and `qkv` is f32, bf16 or f16
/// [T, columns()] with T a multiple of S.
void check_qkv(const char* op, const QkvShape&, const Tensor& qkv);

}  // namespace octet::ops
