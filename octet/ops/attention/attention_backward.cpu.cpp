#include "octet/ops/attention/attention.kernels.hpp"
#include "octet/ops/attention/attention.math.hpp"
#include "octet/ops/attention/blocks.hpp"
#include "octet/ops/attention/multiply.hpp"
#include "octet/ops/attention/scores.hpp"
#include "octet/tensor/cpu/parallel.hpp"

// For one key head, its keys and values are widened and transposed once. Then every block of query rows meets every block of keys up to
// the diagonal in one tile of scores, which stays in the first-level cache through all five products.

namespace octet::cpu::OCTET_ISA {
namespace {

constexpr std::int64_t block = AttentionBlocks::block;

template <class T, class P, class Dp>
struct Backward {
  const ops::AttentionBackward& a;
  const P& coded_p;    // how dv reads probabilities
  const Dp& coded_dp;  // and dq and dk their gradients, with the factor of the scores
  AttentionBlocks blocks;
  std::int64_t sequence, kv_head;
  float scale;
  float *keys, *key_panels, *value_panels, *dkeys, *dvalues, *query, *dout, *dquery, *p, *ds, *lse, *delta;

  Backward(const ops::AttentionBackward& a, const P& coded_p, const Dp& coded_dp, std::int64_t sequence, std::int64_t kv_head,
           float* scratch)
      : a(a), coded_p(coded_p), coded_dp(coded_dp), blocks(a.heads), sequence(sequence), kv_head(kv_head), scale(a.heads.scale()) {
    const auto take = [&](std::int64_t floats) { return (scratch += floats) - floats; };
    const std::int64_t of_keys = blocks.keys * blocks.dim, of_values = blocks.keys * blocks.values, of_queries = block * blocks.dim;
    keys = take(of_keys), dkeys = take(of_keys), dvalues = take(of_values);                   // [keys][dim], or [keys][values]
    key_panels = take(of_keys), value_panels = take(of_values);                               // [keys / block][dim or values][block]
    query = take(of_queries), dout = take(block * blocks.values), dquery = take(of_queries);  // [block][dim], dout [block][values]
    p = take(block * block), ds = take(block * block), lse = take(block), delta = take(block);
  }

  std::int64_t token(std::int64_t row) const { return sequence * a.heads.sequence + row; }
  // The first key that a row reads.
  std::int64_t first_key(std::int64_t row) const { return a.document_starts ? a.document_starts.as<std::int32_t>()[token(row)] : 0; }

  void load_keys_and_values() const {
    const std::int64_t whole = a.heads.whole();
    for (std::int64_t k = 0; k < whole; k += block) {
      const std::int64_t at = k * blocks.dim, of_values = k * blocks.values, n = whole - k < block ? whole - k : block;
      const auto rows = [&](const HeadColumns& columns) { return key_rows<const T>(a.heads, a.keys, a.qkv, sequence, k, n, columns); };
      widen_rows(rows(value_columns(a.heads, kv_head)), 1.0f, block, blocks.values, dvalues + of_values);  // no gradients are there yet
      transpose_block(dvalues + of_values, block, blocks.values, value_panels + of_values);
      widen_rows(rows(key_columns(a.heads, kv_head)), 1.0f, block, blocks.dim, keys + at);
      transpose_block(keys + at, block, blocks.dim, key_panels + at);
    }
    __builtin_memset(dkeys, 0, std::size_t(blocks.keys * (blocks.dim + blocks.values)) * sizeof(float));
  }

  void load_queries(std::int64_t head, const QueryBlock& q) const {
    const std::int64_t rows = q.rows(), values = blocks.values, space = block - q.begin;
    const HeadColumns out = out_columns(a.heads, head);
    widen_rows(rows_of<const T>(a.qkv, token(q.row), rows, query_columns(a.heads, head)), scale, space, blocks.dim,
               query + q.begin * blocks.dim);
    widen_rows(rows_of<const T>(a.d_o, token(q.row), rows, out), 1.0f, space, values, dout + q.begin * values);
    const auto o = rows_of<const T>(a.o, token(q.row), rows, out);
    for (std::int64_t i = 0; i < rows; ++i) {
      lse[q.begin + i] = a.lse.f32()[head * a.qkv.shape[0] + token(q.row) + i];
      delta[q.begin + i] = ops::dot_row(Lane{}, out.count, dout + (q.begin + i) * values, o.data + i * o.stride);
    }
  }

  // p and ds of the tile of a query block and keys from `k` on. A row begins at its document, with zeros before; on the diagonal it ends at
  // its own token, and zeros follow to the end of its strip.
  void scores_of_tile(const QueryBlock& q, std::int64_t k) const {
    const bool diagonal = k == q.first;
    const std::int64_t dim = blocks.dim, values = blocks.values;
    for (std::int64_t r = q.begin / strip * strip; r < q.end; r += strip) {
      const std::int64_t columns = diagonal ? round_up(r + strip, AttentionBlocks::padding) : block;
      multiply_strip(columns, dim, {query + r * dim, dim, 1}, {key_panels + k * dim, block}, p + r * block, block, false);
      multiply_strip(columns, values, {dout + r * values, values, 1}, {value_panels + k * values, block}, ds + r * block, block, false);
    }
    for (std::int64_t r = q.begin; r < q.end; ++r) {
      const std::int64_t columns = diagonal ? round_up(r + 1, AttentionBlocks::padding) : block,
                         before = first_key(q.row + r - q.begin) - k;
      ops::attention_backward_row(Lane{}, columns, lse[r], delta[r], p + r * block, ds + r * block);
      for (std::int64_t j = diagonal ? r + 1 : block; j < round_up(r + 1, strip); ++j) p[r * block + j] = ds[r * block + j] = 0;
      for (std::int64_t j = 0; j < before && j < block; ++j) p[r * block + j] = ds[r * block + j] = 0;
      const std::int64_t first = before < 0 ? 0 : before, end = diagonal ? r + 1 : block;
      coded_p.pass(end - first, p + r * block + first);
      coded_dp.pass(end - first, ds + r * block + first, scale);
    }
  }

  void gradients_of_tile(const QueryBlock& q, std::int64_t k, bool accumulate) const {
    const bool diagonal = k == q.first;
    const std::int64_t dim = blocks.dim, values = blocks.values;
    for (std::int64_t m = 0; m < (diagonal ? q.end : block); m += strip) {                 // keys
      const std::int64_t r = diagonal && m > q.begin ? m : q.begin, tile = r * block + m;  // the first row that reads them
      multiply_strip(values, q.end - r, {p + tile, 1, block}, {dout + r * values, values}, dvalues + (k + m) * values, values, true);
      multiply_strip(dim, q.end - r, {ds + tile, 1, block}, {query + r * dim, dim}, dkeys + (k + m) * dim, dim, true);
    }
    for (std::int64_t r = q.begin / strip * strip; r < q.end; r += strip)
      multiply_strip(dim, diagonal ? r + strip : block, {ds + r * block, block, 1}, {keys + k * dim, dim}, dquery + r * dim, dim,
                     accumulate);
  }

  void query_block(std::int64_t head, const QueryBlock& q) const {
    const std::int64_t begin = first_key(q.row) / block * block;
    load_queries(head, q);
    for (std::int64_t k = begin; k <= q.first; k += block) {
      scores_of_tile(q, k);
      gradients_of_tile(q, k, k > begin);
    }
    narrow_rows(
        dquery + q.begin * blocks.dim, blocks.dim, [&](std::int64_t) { return scale; },
        rows_of<T>(a.dqkv, token(q.row), q.rows(), query_columns(a.heads, head)));
  }

  void store_keys_and_values() const {
    const auto one = [](std::int64_t) { return 1.0f; };
    const auto rows = [&](const HeadColumns& c) { return key_rows<T>(a.heads, a.dkeys, a.dqkv, sequence, 0, a.heads.whole(), c); };
    narrow_rows(dkeys, blocks.dim, one, rows(key_columns(a.heads, kv_head)));
    narrow_rows(dvalues, blocks.values, one, rows(value_columns(a.heads, kv_head)));
  }
};

template <class... Types, class P, class Dp>
void backward(const ops::AttentionBackward& a, const P& p, const Dp& dp, const Tensor& workspace) {
  const std::int64_t key_heads = a.qkv.shape[0] / a.heads.sequence * a.heads.kv_heads, floats = AttentionBlocks(a.heads).backward_floats(),
                     query_blocks = AttentionBlocks::query_blocks(a.heads);
  dispatch<Types...>(a.qkv.dtype, "attention", [&]<class T>() {
    for_each_uneven(key_heads, [&](std::int64_t job) {
      const Backward<T, P, Dp> work(a, p, dp, job / a.heads.kv_heads, job % a.heads.kv_heads, workspace.f32() + this_thread() * floats);
      work.load_keys_and_values();
      for (std::int64_t h = 0; h < a.heads.group(); ++h)
        for (std::int64_t i = 0; i < query_blocks; ++i)
          work.query_block(work.kv_head * a.heads.group() + h, AttentionBlocks::query_block(a.heads, i));
      work.store_keys_and_values();
    });
  });
}

}  // namespace

void attention_backward(const ops::AttentionBackward& a, const Tensor& workspace) {
  backward<float, Bf16, Fp16>(a, PlainScores{}, PlainScores{}, workspace);
}

void emulated_attention_backward(const ops::AttentionBackward& a, const ops::QuantizeSpec& p, const ops::QuantizeSpec& dp,
                                 const Tensor& workspace) {
  with_scores(p, [&](const auto& of_p) { with_scores(dp, [&](const auto& of_dp) { backward<float>(a, of_p, of_dp, workspace); }); });
}

}  // namespace octet::cpu::OCTET_ISA
