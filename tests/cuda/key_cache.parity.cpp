#include "octet/ops/embedding/embedding.hpp"
#include "octet/ops/key_cache/next_token.hpp"
#include "octet/ops/rope/rope.hpp"
#include "tests/cuda/sinks.hpp"

// Stored rows have one formula, so they have the CPU's bits. Attention adds in another order: the bound is that of FP32 sums of the keys
// that a token reads, with scores of d products each, whose errors are factors of exponentials; results are at most the largest value.

namespace octet::parity {
namespace {

using testing::dot_bound, testing::unit_f32;

// Tokens of three sequences at places behind those that are stored, and rows of none.
struct Tokens {
  std::vector<std::int32_t> sequence, place;
};
Tokens tokens_of(std::int32_t stored, std::int32_t added) {
  Tokens out;
  for (std::int32_t b = 0; b < 3; ++b)
    for (std::int32_t i = 0; i < added; ++i) out.sequence.push_back(b), out.place.push_back(stored + 7 * b + i);
  out.sequence.push_back(-1), out.place.push_back(0);
  return out;
}

double attention_bound(const ops::QkvShape& heads, std::int64_t capacity) {
  const double d = double(heads.head_dim), error = dot_bound(d + 4, unit_f32, 16 * std::sqrt(d));
  return 2 * 5 * (2 * std::expm1(2 * error) + dot_bound(2.0 * double(capacity), unit_f32, 1));
}

Case growing(DType dtype, bool coded, const ops::QkvShape& heads, std::int32_t added, std::int64_t window = 0,
             std::int64_t capacity = 600) {
  return {format("key_cache {}{} {} heads of {}", dtype, coded ? " codes" : "", heads.heads, heads.head_dim) +
              format(", {} tokens, window {}, {} places", added, window, capacity),
          [=](Side& side) {
            const ops::KeyRows rows = ops::key_rows(side.stream(), coded ? DType::e4m3 : dtype, 3, heads, capacity, Lifetime::run);
            for (const Tensor& t : {rows.keys, rows.values, rows.key_descales, rows.value_descales})
              if (t) clear(side.stream(), t);
            const auto call = [&](std::int32_t stored, std::int32_t n, std::uint64_t seed) {
              const Tokens t = tokens_of(stored, n);
              const std::int64_t T = std::int64_t(t.place.size());
              const ops::TokenPlaces at{side.raw(t.sequence, {T}), side.raw(t.place, {T})};
              const Tensor qkv = side.gaussian({T, heads.columns()}, seed, dtype), o = side.poisoned({T, heads.out_columns()}, dtype);
              ops::store_keys(side.stream(), {.qkv = qkv, .heads = heads, .to = rows, .at = at, .read_back = true});
              side.result("read back", qkv, same_bits());
              ops::cached_attention(side.stream(), {.qkv = qkv, .o = o, .heads = heads, .from = rows, .at = at, .window = window});
              side.result("o", o, within(attention_bound(heads, capacity)));
            };
            for (const Tensor& t : {rows.keys, rows.values}) clear(side.stream(), t);
            call(0, 500, 1), call(500, added, 2);
            side.result("keys", rows.keys, same_bits()), side.result("values", rows.values, same_bits());
            if (coded) side.result("descales", rows.key_descales, same_bits());
          }};
}

// The next token of each sequence, in one launch. Turned heads are rounded alike, so that stored rows have the CPU's bits.
Case next(DType dtype, bool coded, const ops::QkvShape& heads, bool turned, std::int64_t window = 0, std::int64_t capacity = 600,
          std::int32_t stored = 500) {
  return {format("key_cache next {}{} {} heads of {}", dtype, coded ? " codes" : "", heads.heads, heads.head_dim) +
              format("{}, window {}, {} places", turned ? " turned" : "", window, capacity),
          [=](Side& side) {
            const ops::KeyRows rows = ops::key_rows(side.stream(), coded ? DType::e4m3 : dtype, 3, heads, capacity, Lifetime::run);
            for (const Tensor& t : {rows.keys, rows.values, rows.key_descales, rows.value_descales})
              if (t) clear(side.stream(), t);
            const auto table = turned ? ops::rope_table(side.stream(), capacity, heads.head_dim, 10000) : ops::RopeTable{};
            const auto places = [&](const Tokens& t) {
              const Shape shape{std::int64_t(t.place.size())};
              return ops::TokenPlaces{side.raw(t.sequence, shape), side.raw(t.place, shape)};
            };
            const ops::TokenPlaces before = places(tokens_of(0, stored)), at = places(tokens_of(stored, 1));
            ops::store_keys(
                side.stream(),
                {.qkv = side.gaussian({before.place.shape[0], heads.columns()}, 1, dtype), .heads = heads, .to = rows, .at = before});
            const Tensor qkv = side.gaussian({at.place.shape[0], heads.columns()}, 2, dtype),
                         o = side.poisoned({qkv.shape[0], heads.out_columns()}, dtype);
            ops::next_token_attention(
                side.stream(),
                {.qkv = qkv, .o = ops::plain_sink(o), .heads = heads, .rows = rows, .at = at, .window = window, .table = table});
            side.result("o", o, within(attention_bound(heads, capacity)));
            side.result("keys", rows.keys, same_bits()), side.result("values", rows.values, same_bits());
            if (!coded) return;
            side.result("descales of keys", rows.key_descales, same_bits());
            side.result("descales of values", rows.value_descales, same_bits());
          }};
}

// The result of next tokens to sinks of every kind. A token reads its own key alone, so its result is its value, with the same bits on both
// sides.
Case coded_result(DType dtype, const ops::QkvShape& heads, std::int64_t capacity) {
  return {
      format("key_cache next {} to sinks, {} heads of {}, {} places", dtype, heads.heads, heads.value_dim(), capacity), [=](Side& side) {
        Stream& stream = side.stream();
        const ops::KeyRows rows = ops::key_rows(stream, dtype, 3, heads, capacity, Lifetime::run);
        for (const Tensor& t : {rows.keys, rows.values}) clear(stream, t);
        const ops::TokenPlaces at{side.raw(std::vector<std::int32_t>{2, -1, 0}, {3}), side.raw(std::vector<std::int32_t>{0, 0, 0}, {3})};
        each_sink(side, {3, heads.out_columns()}, dtype,
                  [&](Stream& s, ops::Sink& o) {
                    const Tensor qkv = side.gaussian({3, heads.columns()}, 2, dtype);
                    ops::next_token_attention(s, {.qkv = qkv, .o = o, .heads = heads, .rows = rows, .at = at});
                  },
                  {{.cols = false, .keep_plain = true, .measured = false}, {.keep_plain = true, .count = false}});
      }};
}

Case places(DType dtype) {
  return {
      format("places of tokens {}", dtype), [=](Side& side) {
        const ops::QkvShape heads{4, 2, 32, 1};
        const auto table = ops::rope_table(side.stream(), 50, heads.head_dim, 10000);
        const Tensor at = side.raw(std::vector<std::int32_t>{49, 0, 7, 7, 23}, {5}), qkv = side.gaussian({5, heads.columns()}, 1, dtype);
        ops::rope_forward(side.stream(), {.qkv = qkv, .heads = heads, .table = table, .places = at});
        side.result("qkv", qkv, same_bits());
        const Tensor out = side.poisoned({5, 24}, dtype);
        ops::embedding_forward(side.stream(), {.table = side.gaussian({9, 24}, 2),
                                               .tokens = side.raw(std::vector<std::int32_t>{1, 8, 0, 3, 3}, {5}),
                                               .out = out,
                                               .positions = side.gaussian({50, 24}, 3),
                                               .places = at});
        side.result("out", out, same_bits());
      }};
}

std::vector<Case> make() {
  std::vector<Case> cases;
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    for (const bool coded : {false, true})
      for (const ops::QkvShape& heads :
           {ops::QkvShape{4, 2, 64, 1},
            {7, 1, 128, 1},
            {2, 2, 40, 1},
            {3, 1, 256, 1},
            {.heads = 4, .kv_heads = 4, .head_dim = 192, .sequence = 1, .value_width = 128, .score_factor = 1.2f}}) {
        for (const std::int32_t added : {1, 9}) cases.push_back(growing(dtype, coded, heads, added));
        for (const bool turned : {false, true}) cases.push_back(next(dtype, coded, heads, turned));
        cases.push_back(next(dtype, coded, heads, true, 0, 100, 70));  // one block per head
      }
    cases.push_back(growing(dtype, false, {4, 2, 64, 1, {}, 0, 0.5f}, 9, 33));
    for (const std::int64_t window : {0, 70})
      for (const bool coded : {false, true}) cases.push_back(next(dtype, coded, {8, 2, 128, 1}, true, window, 2100));
    for (const std::int64_t window : {0, 70})
      cases.push_back(growing(dtype, false, {2, 1, 128, 1}, 1, window, 2100));  // more blocks per head
    for (const ops::QkvShape& heads : {ops::QkvShape{4, 2, 128, 1},
                                       {4, 1, 64, 1},
                                       {2, 2, 40, 1},
                                       {1, 1, 512, 1},
                                       {.heads = 4, .kv_heads = 4, .head_dim = 192, .sequence = 1, .value_width = 128}})
      for (const std::int64_t capacity : {40, 600}) cases.push_back(coded_result(dtype, heads, capacity));
    cases.push_back(places(dtype));
  }
  return cases;
}
const Cases registered(make);

}  // namespace
}  // namespace octet::parity
