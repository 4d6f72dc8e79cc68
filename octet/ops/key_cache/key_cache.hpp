#pragma once

#include "octet/ops/attention/qkv.hpp"
#include "octet/tensor/stream.hpp"

// Keys and values of sequences that grow token by token, and attention that reads them.

namespace octet::ops {

/// Keys and values of one layer: of B sequences with up to C tokens and Hkv heads of d and dv columns. Row (b Hkv + h) C + p has those of
/// head h at place p of sequence b: values, or codes with a descale per row, x = value(code) * descale.
struct KeyRows {
  Tensor keys, values;                      // [B Hkv C, d] and [B Hkv C, dv], both f32, bf16, f16 or e4m3
  Tensor key_descales, value_descales;      // f32 [B Hkv C] of codes; otherwise empty
  std::int64_t sequences = 0;               // B
  std::int64_t kv_heads = 0, capacity = 0;  // Hkv, C

  bool coded() const { return is_fp8(keys.dtype); }
};
/// Memory for these in a region; `type`: of both. Contents are undefined. Of the shape, key heads and their columns count.
KeyRows key_rows(Stream&, DType type, std::int64_t sequences, const QkvShape&, std::int64_t capacity, Region);
/// Bytes of it for one token of one sequence.
std::int64_t key_row_bytes(DType type, const QkvShape&);

/// Where T tokens belong: i32 [T] each. A sequence of -1 is none: nothing is stored, and attention's result is 0.
struct TokenPlaces {
  Tensor sequence, place;
};

/// Stores the key and value heads of qkv [T, (H + Hkv) d + Hkv dv] at the tokens' places: as they are, if rows have qkv's type, or as e4m3
/// codes. A row's scale is the largest power of two at which no value is beyond the largest code: |x - value * descale| <= 2^-4 |x|, and at
/// most 2^-10 descale for the least values. Two tokens have different places. `read_back`: heads of qkv become the stored values, which f32
/// and bf16 hold exactly.
struct StoreKeys {
  Tensor qkv;
  QkvShape heads;
  KeyRows to;
  TokenPlaces at;
  bool read_back = false;
};
/// Throws ContractError on other shapes or dtypes, and on a CPU for places beyond the rows.
void store_keys(Stream&, const StoreKeys&);

/// Attention of each token over all places of its sequence up to its own, whose keys and values are stored. For token t at place p:
///   s[j] = f sum_c q[c] k[j, c] / sqrt(d)     j <= p, and j > p - window unless window is 0;   f = heads.score_factor
///   o[t, c] = sum_j exp(s[j] - lse) v[j, c],   lse = log sum_j exp(s[j])
/// per query head. qkv: [T, (H + Hkv) d + Hkv dv] f32, bf16 or f16, of which queries are read; o: [T, H dv] of its dtype. Products, softmax
/// and sums are FP32; results do not depend on the number of threads or on other tokens. Heads have up to 512 columns on a GPU. Workspace
/// on a CPU: per thread, queries and scores of the heads that share a key head, f32.
struct CachedAttention {
  Tensor qkv, o;
  QkvShape heads;
  KeyRows from;
  TokenPlaces at;
  std::int64_t window = 0;
};
/// Throws ContractError on other shapes or dtypes, DeviceError beyond the limits of a GPU.
void cached_attention(Stream&, const CachedAttention&);

}  // namespace octet::ops
