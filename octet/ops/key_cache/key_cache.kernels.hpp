#pragma once

#include "octet/ops/key_cache/next_token.hpp"
#include "octet/tensor/backend.hpp"

namespace octet::cpu {

/// Floats of scratch that one thread needs: queries and scores of the heads of a group, in rows of whole registers.
struct CachedAttentionFloats {
  static constexpr std::int64_t padding = 16;
  std::int64_t query, scores, all;

  explicit CachedAttentionFloats(const ops::CachedAttention& a)
      : query(round_up(a.heads.head_dim, padding)), scores(round_up(a.from.capacity, padding)), all(a.heads.group() * (query + scores)) {}
};

}  // namespace octet::cpu

OCTET_KERNEL(store_keys, const ops::StoreKeys&)
OCTET_KERNEL(cached_attention, const ops::CachedAttention&, const Tensor& workspace)
OCTET_KERNEL(next_token_attention, const ops::NextTokenAttention&, const Tensor& workspace)
