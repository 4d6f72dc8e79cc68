#pragma once

#include "octet/ops/key_cache/key_cache.hpp"
#include "octet/ops/quantize/plain_sink.hpp"
#include "octet/ops/rope/rope.hpp"

namespace octet::ops {

/// Attention of tokens whose keys and values are not stored yet, the next ones of different sequences. It has the results of
///   rope_forward() of qkv at the tokens' places, unless the table is empty;   store_keys() of qkv;   cached_attention() to o.plain;
///   quantize() of o.plain
/// and is one launch on a GPU, up to quantize() where a scale of o is that of several heads. A token's own key and value are those that it
/// stores. qkv is undefined afterwards.
struct NextTokenAttention {
  Tensor qkv;
  Sink o;  // with its plain values
  QkvShape heads;
  KeyRows rows;
  TokenPlaces at;
  std::int64_t window = 0;
  RopeTable table = {};

  CachedAttention attention() const { return {.qkv = qkv, .o = o.plain, .heads = heads, .from = rows, .at = at, .window = window}; }
};
/// Throws ContractError on other shapes or dtypes, and on a CPU for two tokens of one sequence or places beyond rows or table; DeviceError
/// beyond the limits of a GPU.
void next_token_attention(Stream&, const NextTokenAttention&);

}  // namespace octet::ops
