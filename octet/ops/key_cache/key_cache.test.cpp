#include "octet/ops/key_cache/key_cache.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "octet/ops/key_cache/key_cache.kernels.hpp"
#include "octet/ops/quantize/quantize.hpp"
#include "octet/ops/rope/rope.kernels.hpp"
#include "tests/testing/tensors.hpp"

namespace octet::ops {
namespace {

using testing::dot_bound, testing::unit_f32;

struct Case {
  QkvShape heads;
  std::vector<std::vector<std::int32_t>> lengths;  // of each call: tokens that each sequence gets, -1 apart: a row without a sequence
  std::int64_t capacity;
  std::int64_t window = 0;
};
// One token, groups, odd and long heads; sequences of different lengths that grow by different numbers of tokens.
const std::vector<Case> cases = {
    {{1, 1, 16, 1}, {{1}, {1}, {1}}, 3},
    {{6, 2, 24, 1}, {{5, 0, 33}, {1, 1, 1}, {1, 7, 1}}, 40},
    {{4, 4, 5, 1}, {{17}, {3}}, 20},
    {{2, 1, 160, 1}, {{2, 9}, {1, 1}}, 11},
    {{.heads = 3, .kv_heads = 3, .head_dim = 24, .sequence = 1, .value_width = 16, .score_factor = 1.3f}, {{5, 2}, {1, 1}}, 9},
    {{4, 2, 24, 1, {}, 0, 0.5f}, {{9, 3}, {1, 1}}, 11, 4}};

struct Kernels {
  void (*store)(const StoreKeys&);
  void (*attend)(const CachedAttention&, const Tensor&);
};
std::vector<Kernels> kernels() {
  return testing::kernels(Kernels{cpu::v3::store_keys, cpu::v3::cached_attention}, Kernels{cpu::v4::store_keys, cpu::v4::cached_attention});
}

// The nearest e4m3 code's value, ties to the even code, from a table of all codes.
double nearest(double x) {
  double best = 0;
  int even = 1;
  for (int code = 0; code < 0x7F; ++code) {
    const double value = decode<E4M3>(std::uint8_t(code)), now = std::fabs(std::fabs(x) - value), then = std::fabs(std::fabs(x) - best);
    if (now < then || (now == then && code % 2 < even)) best = value, even = code % 2;
  }
  return std::copysign(best, x);
}
std::vector<double> rounded_row(const double* x, std::int64_t d) {
  double most = 0;
  for (std::int64_t c = 0; c < d; ++c) most = std::max(most, std::fabs(x[c]));
  const double scale = most > 0 ? std::exp2(std::floor(std::log2(448 / most))) : 1;
  std::vector<double> out;
  for (std::int64_t c = 0; c < d; ++c) out.push_back(nearest(x[c] * scale) / scale);
  return out;
}

// Keys and values of each sequence in double, and attention from its definition.
struct Reference {
  const Case& c;
  bool coded;
  std::vector<std::vector<std::vector<double>>> rows;  // of each sequence, of each place: key and value heads

  void add(std::int32_t sequence, const std::vector<double>& qkv) {
    std::vector<double> row;
    for (std::int64_t h = 0; h < 2 * c.heads.kv_heads; ++h) {
      const bool key = h < c.heads.kv_heads;
      const std::int64_t d = key ? c.heads.head_dim : c.heads.value_dim();
      const double* const x = qkv.data() + (key ? c.heads.key_column(h) : c.heads.value_column(h - c.heads.kv_heads));
      const std::vector<double> head = coded ? rounded_row(x, d) : std::vector<double>(x, x + d);
      row.insert(row.end(), head.begin(), head.end());
    }
    rows[std::size_t(sequence)].push_back(row);
  }

  // With a bound on the error of FP32: each score is a sum of d products with a scale before and a factor behind it, and errors of scores
  // are factors of exponentials.
  void expect(std::int32_t sequence, std::size_t place, const std::vector<double>& qkv, std::int64_t head, const Tensor& o,
              std::int64_t at) const {
    const std::int64_t d = c.heads.head_dim, dv = c.heads.value_dim(), kv = head / c.heads.group();
    const auto key = [&](std::size_t j, std::int64_t i) { return rows[std::size_t(sequence)][j][std::size_t(kv * d + i)]; };
    const auto value = [&](std::size_t j, std::int64_t i) {
      return rows[std::size_t(sequence)][j][std::size_t(c.heads.kv_heads * d + kv * dv + i)];
    };
    std::vector<double> s(place + 1);
    const std::size_t first = c.window > 0 && place + 1 > std::size_t(c.window) ? place + 1 - std::size_t(c.window) : 0;
    double most = -INFINITY, error = 0, sum = 0;
    for (std::size_t j = first; j <= place; ++j) {
      double magnitude = 0;
      for (std::int64_t i = 0; i < d; ++i) {
        const double p = qkv[std::size_t(head * d + i)] * key(j, i) * double(c.heads.score_factor) / std::sqrt(double(d));
        s[j] += p, magnitude += std::fabs(p);
      }
      error = std::max(error, dot_bound(double(d) + 4, unit_f32, magnitude)), most = std::max(most, s[j]);
    }
    for (std::size_t j = 0; j <= place; ++j) sum += s[j] = j < first ? 0 : std::exp(s[j] - most);
    const auto [unit, smallest] = testing::rounding_to(o.dtype);
    for (std::int64_t i = 0; i < dv; ++i) {
      double wanted = 0, magnitude = 0;
      for (std::size_t j = 0; j <= place; ++j) wanted += s[j] / sum * value(j, i), magnitude += std::fabs(s[j] / sum * value(j, i));
      const double relative = 2 * std::expm1(2 * error + 4 * unit_f32) + dot_bound(2 * double(place) + 8, unit_f32, 1);
      ASSERT_NEAR(value_at(o, at + i), wanted, relative * magnitude + unit * (std::fabs(wanted) + relative * magnitude) + smallest)
          << "head " << head << " place " << place << " column " << i;
    }
  }
};

void run(const Case& c, DType type, bool coded, const Kernels& kernel) {
  Stream s(Device::cpu);
  const std::int64_t sequences = std::int64_t(c.lengths[0].size());
  const KeyRows rows = key_rows(s, coded ? DType::e4m3 : type, sequences, c.heads, c.capacity, Lifetime::run);
  Reference reference{c, coded, std::vector<std::vector<std::vector<double>>>(std::size_t(sequences))};
  std::uint64_t seed = 1;
  for (const std::vector<std::int32_t>& lengths : c.lengths) {
    std::vector<std::int32_t> of, place;
    for (std::int32_t b = 0; b < std::int32_t(sequences); ++b)
      for (std::int32_t i = 0; i < lengths[std::size_t(b)]; ++i)
        of.push_back(b), place.push_back(std::int32_t(reference.rows[std::size_t(b)].size()) + i);
    of.push_back(-1), place.push_back(0);
    const std::int64_t T = std::int64_t(of.size());
    const Tensor qkv = testing::gaussian_tensor(s, {T, c.heads.columns()}, seed++, type),
                 o = testing::gaussian_tensor(s, {T, c.heads.out_columns()}, seed++, type),
                 sequence = s.empty({T}, DType::i32, Lifetime::run), at = s.empty({T}, DType::i32, Lifetime::run);
    std::copy(of.begin(), of.end(), sequence.as<std::int32_t>()), std::copy(place.begin(), place.end(), at.as<std::int32_t>());
    for (std::size_t t = 0; t + 1 < of.size(); ++t)
      reference.add(of[t], testing::values(qkv, std::int64_t(t) * qkv.shape[1], qkv.shape[1]));
    kernel.store({.qkv = qkv, .heads = c.heads, .to = rows, .at = {sequence, at}});
    const CachedAttention a{.qkv = qkv, .o = o, .heads = c.heads, .from = rows, .at = {sequence, at}, .window = c.window};
    kernel.attend(a, s.empty({cpu::threads(), cpu::CachedAttentionFloats(a).all}, DType::f32));
    for (std::size_t t = 0; t + 1 < of.size(); ++t)
      for (std::int64_t h = 0; h < c.heads.heads; ++h)
        reference.expect(of[t], std::size_t(place[t]), testing::values(qkv, std::int64_t(t) * qkv.shape[1], qkv.shape[1]), h, o,
                         (std::int64_t(t) * c.heads.heads + h) * c.heads.value_dim());
    for (const double x : testing::values(o.rows(T - 1, 1))) ASSERT_EQ(x, 0) << "of no sequence";
  }
}

TEST(KeyCache, AttentionOverStoredKeysIsWithinTheBoundOfItsDefinition) {
  for (const Case& c : cases)
    for (const DType type : {DType::f32, DType::bf16, DType::f16})
      for (const bool coded : {false, true})
        for (const Kernels& kernel : kernels()) run(c, type, coded, kernel);
}

TEST(KeyCache, CodesAreReadBackAsStoredAndWithinHalfAStepOfTheValues) {
  const QkvShape heads{2, 1, 40, 1};
  for (const DType type : {DType::f32, DType::bf16})
    for (const double size : {1e-4, 1.0, 700.0}) {
      Stream s(Device::cpu);
      const Tensor qkv = testing::gaussian_tensor(s, {3, heads.columns()}, 5, type, size), zeros = s.zeros({3}, DType::i32),
                   places = s.zeros({3}, DType::i32);
      for (std::int32_t t = 0; t < 3; ++t) places.as<std::int32_t>()[t] = t;
      const KeyRows rows = key_rows(s, DType::e4m3, 1, heads, 3, Lifetime::run);
      const std::vector<double> before = testing::values(qkv);
      store_keys(s, {.qkv = qkv, .heads = heads, .to = rows, .at = {zeros, places}, .read_back = true});
      for (std::int64_t t = 0; t < 3; ++t)
        for (std::int64_t c = 0; c < heads.columns(); ++c) {
          const double x = before[std::size_t(t * heads.columns() + c)], y = value_at(qkv, t * heads.columns() + c);
          if (c < heads.key_column(0)) {
            ASSERT_EQ(x, y);
            continue;
          }
          const bool key = c < heads.value_column(0);
          const std::int64_t column = c - (key ? heads.key_column(0) : heads.value_column(0));
          const double descale = (key ? rows.key_descales : rows.value_descales).f32()[t];
          ASSERT_EQ(y, decode<E4M3>((key ? rows.keys : rows.values).u8()[t * heads.head_dim + column]) * descale);
          ASSERT_LE(std::fabs(x - y), std::max(0x1p-4 * std::fabs(x), 0x1p-10 * descale)) << x;
        }
    }
}

Tensor ints(Stream& s, const std::vector<std::int32_t>& values) {
  const Tensor t = s.empty({std::int64_t(values.size())}, DType::i32);
  std::ranges::copy(values, t.as<std::int32_t>());
  return t;
}

struct Parts {
  void (*turn)(const RopeForward&);
  void (*store)(const StoreKeys&);
  void (*attend)(const CachedAttention&, const Tensor&);
  void (*all)(const NextTokenAttention&, const Tensor&);
};

TEST(KeyCache, AttentionOfTheNextTokensIsThatOfItsParts) {
  const QkvShape heads{6, 2, 24, 1};
  const Parts parts[] = {{cpu::v3::rope_forward, cpu::v3::store_keys, cpu::v3::cached_attention, cpu::v3::next_token_attention},
                         {cpu::v4::rope_forward, cpu::v4::store_keys, cpu::v4::cached_attention, cpu::v4::next_token_attention}};
  for (const DType type : {DType::f32, DType::bf16, DType::f16})
    for (const bool coded : {false, true})
      for (const bool turned : {false, true})
        for (const Parts& isa : testing::kernels(parts[0], parts[1])) {
          Stream s(Device::cpu);
          const RopeTable table = turned ? rope_table(s, 9, heads.head_dim, 10000) : RopeTable{};
          // Rows of both ways, where three sequences have stored keys below places 5, 0 and 8.
          struct Way {
            KeyRows rows;
            Tensor qkv, o;
          };
          std::vector<Way> ways;
          const Tensor sequence = ints(s, {2, 0, -1, 1}), place = ints(s, {8, 5, 0, 0});
          for (int i = 0; i < 2; ++i) {
            Way w{key_rows(s, coded ? DType::e4m3 : type, 3, heads, 9, Lifetime::run), {}, testing::gaussian_tensor(s, {4, 144}, 9, type)};
            const Tensor of = s.zeros({9}, DType::i32), at = s.zeros({9}, DType::i32);
            for (const auto& [b, n] : {std::pair{0, 5}, {2, 8}}) {
              for (std::int32_t p = 0; p < 9; ++p) of.as<std::int32_t>()[p] = p < n ? b : -1, at.as<std::int32_t>()[p] = p;
              isa.store({.qkv = testing::gaussian_tensor(s, {9, heads.columns()}, 1, type), .heads = heads, .to = w.rows, .at = {of, at}});
            }
            w.qkv = testing::gaussian_tensor(s, {4, heads.columns()}, 3, type);
            ways.push_back(w);
          }
          const auto attention = [&](const Way& w) {
            return NextTokenAttention{
                .qkv = w.qkv, .o = plain_sink(w.o), .heads = heads, .rows = w.rows, .at = {sequence, place}, .window = 6, .table = table};
          };
          const NextTokenAttention apart = attention(ways[0]), once = attention(ways[1]);
          const Tensor workspace = s.empty({cpu::threads(), cpu::CachedAttentionFloats(once.attention()).all}, DType::f32);
          if (turned) isa.turn({.qkv = apart.qkv, .heads = heads, .table = table, .places = place});
          isa.store({.qkv = apart.qkv, .heads = heads, .to = apart.rows, .at = apart.at});
          isa.attend(apart.attention(), workspace);
          isa.all(once, workspace);
          EXPECT_EQ(testing::bytes(once.o.plain), testing::bytes(apart.o.plain)) << format("{} {} {}", type, coded, turned);
          EXPECT_EQ(testing::bytes(once.rows.keys.rows(0, 6)), testing::bytes(apart.rows.keys.rows(0, 6)));
          EXPECT_EQ(testing::bytes(once.rows.values.rows(4 * 9 + 8, 1)), testing::bytes(apart.rows.values.rows(4 * 9 + 8, 1)));
        }
}

TEST(KeyCache, AttentionOfTheNextTokensFillsASinkAsQuantizeDoes) {
  const QkvShape heads{4, 2, 64, 1};
  for (const ScaleBlock block : {ScaleBlock{0, 0}, {1, 0}, {1, 32}, {1, 128}}) {
    Stream s(Device::cpu);
    const KeyRows rows = key_rows(s, DType::bf16, 2, heads, 3, Lifetime::run);
    const Tensor qkv = testing::gaussian_tensor(s, {3, heads.columns()}, 1, DType::bf16),
                 o = testing::gaussian_tensor(s, {3, heads.out_columns()}, 2, DType::bf16);
    const QuantizeSpec spec{.format = DType::e4m3, .rule = ScaleRule::power_of_two, .rows = block, .cols = block};
    const auto sink = [&] { return make_sink(s, spec, {.shape = o.shape, .dtype = o.dtype, .plain = o}); };
    const Sink filled = sink();
    next_token_attention(s, {.qkv = qkv, .o = filled, .heads = heads, .rows = rows, .at = {ints(s, {1, -1, 0}), ints(s, {0, 0, 0})}});
    Sink wanted = sink();
    quantize(s, o, wanted);
    EXPECT_EQ(testing::bytes(filled.codes.rows.codes), testing::bytes(wanted.codes.rows.codes));
    EXPECT_EQ(testing::bytes(filled.codes.rows.descales), testing::bytes(wanted.codes.rows.descales));
  }
}

TEST(KeyCache, DryRunAgreesAndPlacesBeyondTheRowsAreRefused) {
  const QkvShape heads{4, 2, 16, 1};
  testing::expect_dry_run_agrees([&](Stream& s) {
    const Tensor qkv = testing::gaussian_tensor(s, {2, heads.columns()}, 1, DType::bf16), o = s.empty({2, 64}, DType::bf16),
                 of = s.zeros({2}, DType::i32), at = s.zeros({2}, DType::i32);
    if (s.device() == Device::cpu) at.as<std::int32_t>()[1] = 4;
    const KeyRows rows = key_rows(s, DType::e4m3, 1, heads, 5, Lifetime::run);
    EXPECT_EQ(key_row_bytes(DType::e4m3, heads) * 5,
              std::int64_t(rows.keys.bytes() + rows.values.bytes() + rows.key_descales.bytes() + rows.value_descales.bytes()));
    store_keys(s, {.qkv = qkv, .heads = heads, .to = rows, .at = {of, at}});
    cached_attention(s, {.qkv = qkv, .o = o, .heads = heads, .from = rows, .at = {of, at}});
    const RopeTable table = rope_table(s, 4, heads.head_dim, 10000);
    const NextTokenAttention next{
        .qkv = qkv.rows(0, 1), .o = plain_sink(o.rows(0, 1)), .heads = heads, .rows = rows, .at = {of.rows(0, 1), at.rows(0, 1)}};
    next_token_attention(s, next);
    if (s.device() == Device::null) return;
    EXPECT_THROW(next_token_attention(s, {.qkv = qkv, .o = plain_sink(o), .heads = heads, .rows = rows, .at = {of, at}}), ContractError)
        << "two tokens of one sequence";
    EXPECT_THROW(next_token_attention(
                     s, {.qkv = next.qkv, .o = next.o, .heads = heads, .rows = rows, .at = {of.rows(1, 1), at.rows(1, 1)}, .table = table}),
                 ContractError)
        << "beyond the table";
    at.as<std::int32_t>()[1] = 5;
    EXPECT_THROW(store_keys(s, {.qkv = qkv, .heads = heads, .to = rows, .at = {of, at}}), ContractError);
  });
}

}  // namespace
}  // namespace octet::ops
