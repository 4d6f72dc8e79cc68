#include "octet/ops/attention/attention.kernels.hpp"
#include "octet/ops/attention/attention.math.hpp"
#include "octet/ops/attention/blocks.hpp"
#include "octet/ops/attention/multiply.hpp"
#include "octet/tensor/cpu/parallel.hpp"

// For one key head, its keys and values are widened and transposed once. Then every block of query rows meets every block of keys up to
// the diagonal in one tile of scores, which stays in the first-level cache through all five products.

namespace octet::cpu::OCTET_ISA {
namespace {

constexpr std::int64_t block = AttentionBlocks::block;

template <class T>
struct Backward {
  const ops::AttentionBackward& a;
  AttentionBlocks blocks;
  std::int64_t first_token, kv_head;
  float *keys, *key_panels, *value_panels, *dkeys, *dvalues, *query, *dout, *dquery, *p, *ds, *lse, *delta;

  Backward(const ops::AttentionBackward& a, std::int64_t sequence, std::int64_t kv_head, float* scratch)
      : a(a), blocks(a.heads), first_token(sequence * a.heads.sequence), kv_head(kv_head) {
    const auto take = [&](std::int64_t floats) { return (scratch += floats) - floats; };
    const std::int64_t of_keys = blocks.keys * blocks.dim, of_queries = block * blocks.dim;
    keys = take(of_keys), dkeys = take(of_keys), dvalues = take(of_keys);          // [keys][dim]
    key_panels = take(of_keys), value_panels = take(of_keys);                      // [keys / block][dim][block]
    query = take(of_queries), dout = take(of_queries), dquery = take(of_queries);  // [block][dim]
    p = take(block * block), ds = take(block * block), lse = take(block), delta = take(block);
  }

  template <class U>
  HeadRows<U> rows_of(const Tensor& x, std::int64_t column, std::int64_t begin, std::int64_t n) const {
    const std::int64_t stride = x.shape[1];
    return {x.as<U>() + (first_token + begin) * stride + column, stride, n, a.heads.head_dim};
  }
  std::int64_t rows_at(std::int64_t first) const { return a.heads.sequence - first < block ? a.heads.sequence - first : block; }

  // The first key that token i of the sequence reads.
  std::int64_t first_key(std::int64_t i) const { return a.document_starts ? a.document_starts.as<std::int32_t>()[first_token + i] : 0; }

  void load_keys_and_values() const {
    for (std::int64_t k = 0; k < a.heads.sequence; k += block) {
      const std::int64_t at = k * blocks.dim;
      widen_rows(rows_of<const T>(a.qkv, a.heads.value_column(kv_head), k, rows_at(k)), 1.0f, block, blocks.dim, keys + at);
      transpose_block(keys + at, block, blocks.dim, value_panels + at);
      widen_rows(rows_of<const T>(a.qkv, a.heads.key_column(kv_head), k, rows_at(k)), 1.0f, block, blocks.dim, keys + at);
      transpose_block(keys + at, block, blocks.dim, key_panels + at);
    }
    __builtin_memset(dkeys, 0, std::size_t(2 * blocks.keys * blocks.dim) * sizeof(float));
  }

  void load_queries(std::int64_t head, std::int64_t first) const {
    const std::int64_t d = a.heads.head_dim, rows = rows_at(first), dim = blocks.dim;
    widen_rows(rows_of<const T>(a.qkv, a.heads.query_column(head), first, rows), 1.0f / __builtin_sqrtf(float(d)), block, dim, query);
    widen_rows(rows_of<const T>(a.d_o, head * d, first, rows), 1.0f, block, dim, dout);
    const auto o = rows_of<const T>(a.o, head * d, first, rows);
    for (std::int64_t r = 0; r < rows; ++r) {
      lse[r] = a.lse.f32()[head * a.qkv.shape[0] + first_token + first + r];
      delta[r] = ops::dot_row(Lane{}, d, dout + r * dim, o.data + r * o.stride);
    }
  }

  // p and ds of the tile of query rows from `first` on and keys from `k` on. A row begins at its document, with zeros before; on the
  // diagonal it ends at its own token, and zeros follow to the end of its strip.
  void scores_of_tile(std::int64_t first, std::int64_t k, std::int64_t rows) const {
    const bool diagonal = k == first;
    const std::int64_t dim = blocks.dim;
    for (std::int64_t r = 0; r < rows; r += strip) {
      const std::int64_t columns = diagonal ? round_up(r + strip, AttentionBlocks::padding) : block;
      multiply_strip(columns, dim, {query + r * dim, dim, 1}, {key_panels + k * dim, block}, p + r * block, block, false);
      multiply_strip(columns, dim, {dout + r * dim, dim, 1}, {value_panels + k * dim, block}, ds + r * block, block, false);
    }
    for (std::int64_t r = 0; r < rows; ++r) {
      const std::int64_t columns = diagonal ? round_up(r + 1, AttentionBlocks::padding) : block, before = first_key(first + r) - k;
      ops::attention_backward_row(Lane{}, columns, lse[r], delta[r], p + r * block, ds + r * block);
      for (std::int64_t j = diagonal ? r + 1 : block; j < round_up(r + 1, strip); ++j) p[r * block + j] = ds[r * block + j] = 0;
      for (std::int64_t j = 0; j < before && j < block; ++j) p[r * block + j] = ds[r * block + j] = 0;
    }
  }

  void gradients_of_tile(std::int64_t first, std::int64_t k, std::int64_t rows, bool accumulate) const {
    const bool diagonal = k == first;
    const std::int64_t dim = blocks.dim;
    for (std::int64_t m = 0; m < (diagonal ? rows : block); m += strip) {  // keys
      const std::int64_t r = diagonal ? m : 0, tile = r * block + m;       // the first row that reads them
      multiply_strip(dim, rows - r, {p + tile, 1, block}, {dout + r * dim, dim}, dvalues + (k + m) * dim, dim, true);
      multiply_strip(dim, rows - r, {ds + tile, 1, block}, {query + r * dim, dim}, dkeys + (k + m) * dim, dim, true);
    }
    for (std::int64_t r = 0; r < rows; r += strip)
      multiply_strip(dim, diagonal ? r + strip : block, {ds + r * block, block, 1}, {keys + k * dim, dim}, dquery + r * dim, dim,
                     accumulate);
  }

  void query_block(std::int64_t head, std::int64_t first) const {
    const std::int64_t rows = rows_at(first), begin = first_key(first) / block * block;
    load_queries(head, first);
    for (std::int64_t k = begin; k <= first; k += block) {
      scores_of_tile(first, k, rows);
      gradients_of_tile(first, k, rows, k > begin);
    }
    const float scale = 1.0f / __builtin_sqrtf(float(a.heads.head_dim));
    narrow_rows(
        dquery, blocks.dim, [&](std::int64_t) { return scale; }, rows_of<T>(a.dqkv, a.heads.query_column(head), first, rows));
  }

  void store_keys_and_values() const {
    const auto one = [](std::int64_t) { return 1.0f; };
    narrow_rows(dkeys, blocks.dim, one, rows_of<T>(a.dqkv, a.heads.key_column(kv_head), 0, a.heads.sequence));
    narrow_rows(dvalues, blocks.dim, one, rows_of<T>(a.dqkv, a.heads.value_column(kv_head), 0, a.heads.sequence));
  }
};

}  // namespace

void attention_backward(const ops::AttentionBackward& a, const Tensor& workspace) {
  const std::int64_t key_heads = a.qkv.shape[0] / a.heads.sequence * a.heads.kv_heads, floats = AttentionBlocks(a.heads).backward_floats();
  dispatch<float, Bf16, Fp16>(a.qkv.dtype, "attention", [&]<class T>() {
    for_each_uneven(key_heads, [&](std::int64_t job) {
      const Backward<T> work(a, job / a.heads.kv_heads, job % a.heads.kv_heads, workspace.f32() + this_thread() * floats);
      work.load_keys_and_values();
      for (std::int64_t h = 0; h < a.heads.group(); ++h)
        for (std::int64_t first = 0; first < a.heads.sequence; first += block) work.query_block(work.kv_head * a.heads.group() + h, first);
      work.store_keys_and_values();
    });
  });
}

}  // namespace octet::cpu::OCTET_ISA
