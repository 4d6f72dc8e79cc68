#include "octet/ops/attention/attention.kernels.hpp"
#include "octet/ops/attention/attention.math.hpp"
#include "octet/ops/attention/blocks.hpp"
#include "octet/ops/attention/multiply.hpp"
#include "octet/ops/attention/scores.hpp"
#include "octet/tensor/cpu/parallel.hpp"

// For one key head, its keys are transposed once into panels of a block of keys, its values widened. Then every block of query rows that
// reads them: all scores up to the diagonal, their exponentials, and the weighted sum of values, divided at the end.

namespace octet::cpu::OCTET_ISA {
namespace {

constexpr std::int64_t block = AttentionBlocks::block;

template <class T, class Scores>
struct Forward {
  const ops::AttentionForward& a;
  const Scores& coded;  // how the product with values reads exponentials
  AttentionBlocks blocks;
  std::int64_t sequence, kv_head;
  float scale;
  float *panels, *values, *query, *out, *scores;

  Forward(const ops::AttentionForward& a, const Scores& coded, std::int64_t sequence, std::int64_t kv_head, float* scratch)
      : a(a), coded(coded), blocks(a.heads), sequence(sequence), kv_head(kv_head), scale(a.heads.scale()) {
    panels = scratch;                              // [keys / block][dim][block]
    values = panels + blocks.keys * blocks.dim;    // [keys][values]
    query = values + blocks.keys * blocks.values;  // [block][dim]
    out = query + block * blocks.dim;              // [block][values]
    scores = out + block * blocks.values;          // [block][blocks.scores]
  }

  std::int64_t token(std::int64_t row) const { return sequence * a.heads.sequence + row; }
  HeadRows<const T> keys_at(std::int64_t place, std::int64_t n, const HeadColumns& columns) const {
    return key_rows<const T>(a.heads, a.keys, a.qkv, sequence, place, n, columns);
  }

  // The first key that a row reads.
  std::int64_t first_key(std::int64_t row) const { return a.document_starts ? a.document_starts.as<std::int32_t>()[token(row)] : 0; }
  // The block of keys in which that of the first query row lies.
  std::int64_t first_block(const QueryBlock& q) const { return first_key(q.row) / block * block; }

  void load_keys_and_values(std::int64_t begin, std::int64_t end) const {
    for (std::int64_t k = begin; k < end; k += block) {
      const std::int64_t n = end - k < block ? end - k : block;
      widen_rows(keys_at(k, n, key_columns(a.heads, kv_head)), 1.0f, block, blocks.dim, query);
      transpose_block(query, block, blocks.dim, panels + k * blocks.dim);
      widen_rows(keys_at(k, n, value_columns(a.heads, kv_head)), 1.0f, block, blocks.values, values + k * blocks.values);
    }
  }

  void scores_of_block(const QueryBlock& q) const {
    for (std::int64_t k = first_block(q); k <= q.first; k += block)
      for (std::int64_t r = q.begin / strip * strip; r < q.end; r += strip) {
        const std::int64_t columns = k == q.first ? round_up(r + strip, AttentionBlocks::padding) : block;
        multiply_strip(columns, blocks.dim, {query + r * blocks.dim, blocks.dim, 1}, {panels + k * blocks.dim, block},
                       scores + r * blocks.scores + k, blocks.scores, false);
      }
  }

  // Row r of the block: exponentials from its document's start to the diagonal, zeros before, and from there to the end of its strip.
  auto exponentials(const QueryBlock& q, std::int64_t r) const {
    float* const s = scores + r * blocks.scores;
    const std::int64_t begin = first_block(q), valid = q.first + r + 1, padded = round_up(valid, AttentionBlocks::padding),
                       end = q.first + round_up(r + 1, strip), key = first_key(q.row + r - q.begin);
    for (std::int64_t j = begin; j < key; ++j) s[j] = -__builtin_inff();
    for (std::int64_t j = valid; j < padded; ++j) s[j] = -__builtin_inff();
    const auto row = ops::exponentials_row(Lane{}, padded - begin, s + begin);
    for (std::int64_t j = padded; j < end; ++j) s[j] = 0;
    coded.pass(valid - (key > begin ? key : begin), s + (key > begin ? key : begin));
    return row;
  }

  void values_of_block(const QueryBlock& q) const {
    const std::int64_t begin = first_block(q);
    for (std::int64_t k = begin; k <= q.first; k += block)
      for (std::int64_t r = q.begin / strip * strip; r < q.end; r += strip) {
        const std::int64_t depth = k == q.first ? r + strip : block;
        multiply_strip(blocks.values, depth, {scores + r * blocks.scores + k, blocks.scores, 1},
                       {values + k * blocks.values, blocks.values}, out + r * blocks.values, blocks.values, k > begin);
      }
  }

  void query_block(std::int64_t head, const QueryBlock& q) const {
    widen_rows(rows_of<const T>(a.qkv, token(q.row), q.rows(), query_columns(a.heads, head)), scale, block - q.begin, blocks.dim,
               query + q.begin * blocks.dim);
    scores_of_block(q);
    float inverse_sum[block];
    float* const lse = a.lse.f32() + head * a.qkv.shape[0] + token(q.row);
    for (std::int64_t i = 0; i < q.rows(); ++i) {
      const auto row = exponentials(q, q.begin + i);
      inverse_sum[i] = 1.0f / row.sum;
      lse[i] = row.most + math::log(row.sum);
    }
    values_of_block(q);
    narrow_rows<T>(
        out + q.begin * blocks.values, blocks.values, [&](std::int64_t r) { return inverse_sum[r]; },
        rows_of<T>(a.o, token(q.row), q.rows(), out_columns(a.heads, head)));
  }
};

template <class... Types, class Scores>
void forward(const ops::AttentionForward& a, const Scores& scores, const Tensor& workspace) {
  const AttentionBlocks sizes(a.heads);
  // One job is one key head of one sequence; where these are few, each part of its query blocks is one.
  const std::int64_t key_heads = a.qkv.shape[0] / a.heads.sequence * a.heads.kv_heads, query_blocks = sizes.query_blocks(a.heads);
  const std::int64_t wanted = key_heads == 0 ? 1 : ceil_div(4 * threads(), key_heads),
                     parts = wanted < query_blocks ? wanted : query_blocks;
  dispatch<Types...>(a.qkv.dtype, "attention", [&]<class T>() {
    for_each_uneven(key_heads * parts, [&](std::int64_t job) {
      const std::int64_t head = job % key_heads, part = parts - 1 - job / key_heads;  // the longest rows first
      const Forward<T, Scores> work(a, scores, head / a.heads.kv_heads, head % a.heads.kv_heads,
                                    workspace.f32() + this_thread() * sizes.forward_floats());
      const std::int64_t begin = part * query_blocks / parts, end = (part + 1) * query_blocks / parts;
      const QueryBlock first = sizes.query_block(a.heads, begin), last = sizes.query_block(a.heads, end - 1);
      work.load_keys_and_values(work.first_block(first), last.first + last.end);
      for (std::int64_t h = 0; h < a.heads.group(); ++h)
        for (std::int64_t i = begin; i < end; ++i) work.query_block(work.kv_head * a.heads.group() + h, sizes.query_block(a.heads, i));
    });
  });
}

}  // namespace

void attention_forward(const ops::AttentionForward& a, const Tensor& workspace) { forward<float, Bf16, Fp16>(a, PlainScores{}, workspace); }

void emulated_attention_forward(const ops::AttentionForward& a, const ops::QuantizeSpec& p, const Tensor& workspace) {
  with_scores(p, [&](const auto& scores) { forward<float>(a, scores, workspace); });
}

}  // namespace octet::cpu::OCTET_ISA
