#include "octet/ops/key_cache/key_cache.hpp"

#include <vector>

#include "octet/ops/key_cache/key_cache.kernels.hpp"
#include "octet/ops/quantize/quantize.hpp"
#include "octet/ops/quantize/stack.hpp"

namespace octet::ops {
namespace {

void check_rows(const char* op, const QkvShape& heads, const KeyRows& r, DType of_qkv) {
  const std::int64_t rows = r.sequences * r.kv_heads * r.capacity;
  const auto sound = [&](const Tensor& values, std::int64_t columns, const Tensor& descales) {
    return values.shape == Shape{rows, columns} && values.dtype == r.keys.dtype &&
           (r.coded() ? descales.shape == Shape{rows} && descales.dtype == DType::f32 : !descales);
  };
  check(
      r.kv_heads == heads.kv_heads && sound(r.keys, heads.head_dim, r.key_descales) && sound(r.values, heads.value_dim(), r.value_descales),
      "{}: keys and values must be [{}, {} and {}] of {} sequences, {} heads and {} places, got {} and {}", op, rows, heads.head_dim,
      heads.value_dim(), r.sequences, heads.kv_heads, r.capacity, r.keys.shape, r.values.shape);
  check(r.keys.dtype == of_qkv || r.keys.dtype == DType::e4m3, "{}: keys must be of qkv's type {} or e4m3, got {}", op, of_qkv,
        r.keys.dtype);
}

void check_places(const char* op, const Stream& stream, const TokenPlaces& at, std::int64_t tokens, const KeyRows& r) {
  for (const Tensor& t : {at.sequence, at.place})
    check(t.shape == Shape{tokens} && t.dtype == DType::i32, "{}: sequences and places of tokens must be i32 [{}], got {} {}", op, tokens,
          t.dtype, t.shape);
  if (stream.device() != Device::cpu) return;
  for (std::int64_t t = 0; t < tokens; ++t) {
    const std::int32_t sequence = at.sequence.as<std::int32_t>()[t], place = at.place.as<std::int32_t>()[t];
    check(sequence >= -1 && sequence < r.sequences && place >= 0 && place < r.capacity,
          "{}: token {} is at place {} of sequence {}, and there are {} places in {} sequences", op, t, place, sequence, r.capacity,
          r.sequences);
  }
}

template <class Args>
void check_all(const char* op, const Stream& stream, const Args& a, const KeyRows& rows) {
  check_qkv(op, a.heads, a.qkv);
  check(!a.heads.part, "{}: parts of sequences have no stored keys", op);
  check_rows(op, a.heads, rows, a.qkv.dtype);
  check_places(op, stream, a.at, a.qkv.shape[0], rows);
}

void check_attention(const char* op, const Stream& stream, const CachedAttention& a) {
  check_all(op, stream, a, a.from);
  check(a.window >= 0, "{}: a window must be 0 or more tokens, got {}", op, a.window);
  const std::int64_t tokens = a.qkv.shape[0];
  check(a.o.shape == Shape{tokens, a.heads.out_columns()} && a.o.dtype == a.qkv.dtype, "{}: o must be {} [{}, {}], got {} {}", op,
        a.qkv.dtype, tokens, a.heads.out_columns(), a.o.dtype, a.o.shape);
}

// Two products; how many keys a token reads is known on the device alone.
void count_attention(Stream& stream, const CachedAttention& a) {
  const double columns = double(a.heads.head_dim + a.heads.value_dim());
  stream.count({.ops = 1, .flops = 2.0 * double(a.qkv.shape[0]) * double(a.heads.heads) * columns * double(a.from.capacity)});
}

Tensor attention_workspace(Stream& stream, const CachedAttention& a) {
  if (stream.target().device != Device::cpu) return {};
  return stream.empty({stream.workers(), cpu::CachedAttentionFloats(a).all}, DType::f32, Lifetime::scratch, Category::workspace);
}

void check_next_tokens(const Stream& stream, const NextTokenAttention& a) {
  check(a.o.shape == a.o.plain.shape && a.o.dtype == a.o.plain.dtype && !is_stack(a.o.spec),
        "next_token_attention: the sink of o must be one matrix of {} {}, got {} {}", a.o.plain.dtype, a.o.plain.shape, a.o.dtype,
        a.o.shape);
  if (a.table.cos) check_rope_table("next_token_attention", a.table, a.heads.head_dim, 1);
  if (stream.device() != Device::cpu) return;
  std::vector<bool> taken(std::size_t(a.rows.sequences));
  for (std::int64_t t = 0; t < a.qkv.shape[0]; ++t) {
    const std::int32_t sequence = a.at.sequence.as<std::int32_t>()[t], place = a.at.place.as<std::int32_t>()[t];
    check(!a.table.cos || place < a.table.cos.shape[0], "next_token_attention: token {} is at place {}, and the table has {}", t, place,
          a.table.cos.shape[0]);
    check(sequence < 0 || !taken[std::size_t(sequence)], "next_token_attention: two tokens are of sequence {}", sequence);
    if (sequence >= 0) taken[std::size_t(sequence)] = true;
  }
}

// Whether a head's values are all that its scales need.
bool scales_are_of_heads(const Sink& o, std::int64_t width) {
  const ScaleBlock block = o.spec.rows;
  return !o.spec.quantizes() || o.spec.scale_known() || (block.rows == 1 && block.cols > 0 && width % block.cols == 0 && !o.codes.cols);
}

}  // namespace

KeyRows key_rows(Stream& stream, DType type, std::int64_t sequences, const QkvShape& heads, std::int64_t capacity, Region region) {
  const std::int64_t rows = sequences * heads.kv_heads * capacity;
  const auto empty = [&](Shape shape, DType of) { return stream.empty(shape, of, region, Category::activations); };
  KeyRows out{.keys = empty({rows, heads.head_dim}, type),
              .values = empty({rows, heads.value_dim()}, type),
              .sequences = sequences,
              .kv_heads = heads.kv_heads,
              .capacity = capacity};
  if (is_fp8(type)) out.key_descales = empty({rows}, DType::f32), out.value_descales = empty({rows}, DType::f32);
  return out;
}

std::int64_t key_row_bytes(DType type, const QkvShape& heads) {
  const std::int64_t descales = is_fp8(type) ? 2 * std::int64_t(sizeof(float)) : 0;
  return heads.kv_heads * ((heads.head_dim + heads.value_dim()) * std::int64_t(size_of(type)) + descales);
}

void store_keys(Stream& stream, const StoreKeys& a) {
  check_all("store_keys", stream, a, a.to);
  stream.count({.ops = 1, .bytes = 2.0 * double(a.qkv.shape[0]) * double(a.heads.key_columns()) * double(size_of(a.qkv.dtype))});
  OCTET_LAUNCH(stream, store_keys, a);
}

void cached_attention(Stream& stream, const CachedAttention& a) {
  check_attention("cached_attention", stream, a);
  count_attention(stream, a);
  const Scope scope(stream);
  const Tensor workspace = attention_workspace(stream, a);
  OCTET_LAUNCH(stream, cached_attention, a, workspace);
}

void next_token_attention(Stream& stream, const NextTokenAttention& a) {
  const CachedAttention attention = a.attention();
  check_attention("next_token_attention", stream, attention);
  check_next_tokens(stream, a);
  count_attention(stream, attention);
  const Scope scope(stream);
  const Tensor workspace = attention_workspace(stream, attention);
  const bool at_once = scales_are_of_heads(a.o, a.heads.value_dim());
  NextTokenAttention next = a;
  if (!at_once) next.o = plain_sink(a.o.plain);
  OCTET_LAUNCH(stream, next_token_attention, next, workspace);
  next.o = a.o;
  if (!at_once) quantize(stream, a.o.plain, next.o);
}

}  // namespace octet::ops
