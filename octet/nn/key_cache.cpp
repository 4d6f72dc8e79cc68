#include "octet/nn/key_cache.hpp"

namespace octet::nn {

KeyCache& no_cache() {
  static KeyCache it;
  return it;
}

const ops::KeyRows& StoredKeys::rows_of(Stream& stream, int block, const ops::AttentionForward& a) {
  if (blocks_.size() <= std::size_t(block)) blocks_.resize(std::size_t(block) + 1);
  std::optional<ops::KeyRows>& rows = blocks_[std::size_t(block)];
  if (!rows)
    rows = ops::key_rows(stream, config_.codes.value_or(a.qkv.dtype), config_.sequences, a.heads, config_.capacity, config_.region);
  return *rows;
}

void StoredKeys::attend(Stream& stream, int block, const ops::AttentionForward& a, std::int64_t window) {
  check(!a.keys && (window > 0 || !a.document_starts), "stored keys: a batch has whole sequences without documents");
  const ops::KeyRows& rows = rows_of(stream, block, a);
  ops::store_keys(stream, {.qkv = a.qkv, .heads = a.heads, .to = rows, .at = at_, .read_back = whole_});
  if (whole_) return ops::attention_forward(stream, a);
  ops::cached_attention(stream, {.qkv = a.qkv, .o = a.o, .heads = a.heads, .from = rows, .at = at_, .window = window});
}

}  // namespace octet::nn
