#include <gtest/gtest.h>

#include <cmath>

#include "octet/ops/attention/documents.testing.hpp"
#include "octet/ops/rope/rope.kernels.hpp"
#include "octet/ops/rope/rope.math.hpp"
#include "tests/testing/dual.hpp"
#include "tests/testing/lanes.hpp"
#include "tests/testing/tensors.hpp"

namespace octet::ops {
namespace {

using testing::Dual, testing::NumberLane, testing::gaussian;
constexpr double u = testing::unit_f32;

struct Kernels {
  void (*forward)(const RopeForward&);
  void (*backward)(const RopeBackward&);
};
std::vector<Kernels> kernels() {
  std::vector<Kernels> list = {{cpu::v3::rope_forward, cpu::v3::rope_backward}};
  if (cpu::detected_isa() == cpu::Isa::v4) list.push_back({cpu::v4::rope_forward, cpu::v4::rope_backward});
  return list;
}

// One token, odd, d of 1, 5, 8, 32 and 64 pairs, grouped heads, no tokens.
struct Case {
  std::int64_t tokens;
  QkvShape heads;
};
const std::vector<Case> cases = {{1, {1, 1, 2, 1}},    {9, {3, 1, 10, 3}},  {14, {2, 2, 16, 7}},
                                 {33, {7, 1, 64, 33}}, {4, {4, 2, 128, 2}}, {0, {1, 1, 16, 5}}};

Tensor random(Stream& stream, Shape shape, DType dtype, std::uint64_t seed) {
  const Tensor t = stream.empty(shape, dtype);
  const auto values = gaussian(std::size_t(t.count()), seed);
  for (std::int64_t i = 0; i < t.count(); ++i) testing::put(t, i, values[std::size_t(i)]);
  return t;
}
std::vector<double> values_of(const Tensor& t) {
  std::vector<double> out;
  for (std::int64_t i = 0; i < t.count(); ++i) out.push_back(value_at(t, i));
  return out;
}

// Straight from the definition; `sign` is that of the angles.
struct Rotated {
  double value, bound;
};
Rotated rotated(const Case& c, const std::vector<double>& x, std::int64_t token, std::int64_t column, double theta, double sign) {
  const std::int64_t d = c.heads.head_dim, half = d / 2, i = column % half, head = column / d * d, row = token * c.heads.columns() + head;
  const double self = x[std::size_t(token * c.heads.columns() + column)];
  if (column >= c.heads.value_column(0)) return {self, 0};
  const double angle = sign * double(token % c.heads.sequence) * std::pow(theta, -2.0 * double(i) / double(d));
  const bool upper = column % d >= half;
  const double other = x[std::size_t(row + (upper ? i : i + half))];
  const double a = self * std::cos(angle), b = (upper ? 1 : -1) * other * std::sin(angle);
  return {a + b, 1.01 * 3 * u * (std::abs(a) + std::abs(b))};  // the table's rounding, the products', the sum's
}

void expect_rotated(const Case& c, const Tensor& got, const std::vector<double>& x, double theta, double sign) {
  for (std::int64_t i = 0; i < got.count(); ++i) {
    const Rotated want = rotated(c, x, i / c.heads.columns(), i % c.heads.columns(), theta, sign);
    const auto [unit, smallest] = testing::rounding_to(got.dtype);
    ASSERT_NEAR(value_at(got, i), want.value, want.bound + unit * (std::abs(want.value) + want.bound) + smallest) << i;
  }
}

// A token at place p of its document gets the bits of one at place p of a sequence.
TEST(Rope, PositionsBeginAgainWithEveryDocument) {
  constexpr std::int64_t length = 21;
  const QkvShape heads{3, 1, 16, length};
  const std::vector<std::int32_t> starts = random_document_starts(2 * length, length, 5);
  Stream s(Device::cpu);
  const Tensor on_stream = s.empty({2 * length}, DType::i32);
  std::copy(starts.begin(), starts.end(), on_stream.as<std::int32_t>());
  const RopeTable table = rope_table(s, length, heads.head_dim, 10000);
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    const Tensor x = random(s, {2 * length, heads.columns()}, dtype, 1), forward = s.empty(x.shape, dtype), alone = s.empty(x.shape, dtype);
    Sink backward = make_sink(s, {}, {.shape = x.shape, .dtype = dtype, .plain = s.empty(x.shape, dtype)});
    Sink alone_backward = make_sink(s, {}, {.shape = x.shape, .dtype = dtype, .plain = s.empty(x.shape, dtype)});
    copy(s, x, forward);
    rope_forward(s, {.qkv = forward, .heads = heads, .table = table, .document_starts = on_stream});
    rope_backward(s, {.dqkv = x, .heads = heads, .table = table, .y = backward, .document_starts = on_stream});
    for (std::int64_t t = 0; t < 2 * length; ++t) {
      const std::int64_t place = t % length - starts[std::size_t(t)];
      clear(s, alone);
      copy(s, x.rows(t, 1), alone.rows(place, 1));
      rope_backward(s, {.dqkv = alone, .heads = heads, .table = table, .y = alone_backward});
      EXPECT_EQ(values_of(alone_backward.plain.rows(place, 1)), values_of(backward.plain.rows(t, 1))) << t;
      rope_forward(s, {.qkv = alone, .heads = heads, .table = table});
      EXPECT_EQ(values_of(alone.rows(place, 1)), values_of(forward.rows(t, 1))) << t;
    }
  }
}

// transformers 5: ROPE_INIT_FUNCTIONS["llama3"], FP32, for head_dim 64, theta 500000, factor 32 and the other factors of Llama-3.2-1B.
// Its power is off by 13.2 u (the logarithm of 500000 times u) and a few more.
TEST(Rope, FrequenciesOfLlama3AreThoseOfHuggingFace) {
  const double want[] = {1.0,
                         0.663601279258728,
                         0.44036662578582764,
                         0.2922278344631195,
                         0.193922758102417,
                         0.12868738174438477,
                         0.08539710193872452,
                         0.05666961893439293,
                         0.03760603070259094,
                         0.02495540864765644,
                         0.016560440883040428,
                         0.010989529080688953,
                         0.00729266507551074,
                         0.00483942124992609,
                         0.0032114461064338684,
                         0.0012905480107292533,
                         0.000429556705057621,
                         9.708286233944818e-05,
                         1.9461638657958247e-05,
                         1.291476746700937e-05,
                         8.570255886297673e-06,
                         5.687232260243036e-06,
                         3.7740544485131977e-06,
                         2.504467147446121e-06,
                         1.6619674170215148e-06,
                         1.1028836297555245e-06,
                         7.318749339901842e-07,
                         4.856731266045244e-07,
                         3.2229328894572973e-07,
                         2.1387423032592778e-07,
                         1.4192720243499934e-07,
                         9.418306490260875e-08};
  const RopeScaling scaling{.factor = 32, .low_freq_factor = 1, .high_freq_factor = 4, .original_max_position = 8192};
  for (int i = 0; i < 32; ++i) EXPECT_NEAR(rope_frequency(64, i, 500000, scaling), want[i], 20 * u * want[i]) << i;
}

// transformers 5.24: ROPE_INIT_FUNCTIONS["yarn"] and ["linear"], FP32, theta 10000, and the factor of cosines and sines. Every eighth
// frequency of DeepSeek-V2-Lite; heads of 16 with a range of 2 to 8 turns within 64 positions that is not rounded; the usual range.
TEST(Rope, FrequenciesAndAmplitudesOfYarnAndOfLinearScalingAreThoseOfHuggingFace) {
  using Kind = RopeScaling::Kind;
  struct Case {
    RopeScaling scaling;
    std::int64_t head_dim, step;
    std::vector<double> frequencies;
    double amplitude, score_factor;
  };
  const RopeScaling v2_lite{
      .kind = Kind::yarn, .factor = 40, .high_freq_factor = 32, .original_max_position = 4096, .mscale = 0.707, .mscale_all_dim = 0.707};
  const RopeScaling exact{.kind = Kind::yarn,
                          .factor = 8,
                          .low_freq_factor = 2,
                          .high_freq_factor = 8,
                          .original_max_position = 64,
                          .mscale = 1,
                          .mscale_all_dim = 0.5,
                          .truncate = false};
  const RopeScaling usual{.kind = Kind::yarn, .factor = 4, .high_freq_factor = 32, .original_max_position = 2048};
  RopeScaling given = usual;
  given.attention_factor = 1.25;
  const std::vector<double> of_usual{1.0,
                                     0.3162277638912201,
                                     0.10000000149011612,
                                     0.025693506002426147,
                                     0.00624999962747097,
                                     0.0013834965648129582,
                                     0.0002500000118743628,
                                     7.905694656074047e-05};
  const double m = 0.1 * 0.707 * std::log(40.0) + 1, half = 0.1 * 0.5 * std::log(8.0) + 1;
  for (const Case& c : {Case{v2_lite, 64, 8, {1.0, 0.10000000149011612, 0.005500000435858965, 2.499999936844688e-05}, 1, m * m},
                        Case{exact,
                             16,
                             1,
                             {1.0, 0.1346493810415268, 0.012500000186264515, 0.0039528473280370235, 0.0012499999720603228,
                              0.00039528473280370235, 0.0001250000059371814, 3.9528473280370235e-05},
                             1.094179988101349,
                             half * half},
                        Case{usual, 16, 1, of_usual, 1.138629436111989, 1}, Case{given, 16, 1, of_usual, 1.25, 1},
                        Case{{.kind = Kind::linear, .factor = 4},
                             16,
                             1,
                             {0.25, 0.07905694097280502, 0.02500000037252903, 0.007905694656074047, 0.0024999999441206455,
                              0.0007905694656074047, 0.0002500000118743628, 7.905694656074047e-05},
                             1,
                             1}}) {
    for (std::size_t i = 0; i < c.frequencies.size(); ++i)  // the power is off by log(10000) u, the ramp by a few u of its range
      EXPECT_NEAR(rope_frequency(c.head_dim, std::int64_t(i) * c.step, 10000, c.scaling), c.frequencies[i], 20 * u * c.frequencies[i]) << i;
    EXPECT_NEAR(rope_amplitude(c.scaling), c.amplitude, 1e-14);
    EXPECT_NEAR(rope_score_factor(c.scaling), c.score_factor, 1e-14);
  }
  Stream stream(Device::cpu);
  const RopeTable table = rope_table(stream, 9, 16, 10000, usual);
  for (int i = 0; i < 8; ++i) {
    const double f = rope_frequency(16, i, 10000, usual);
    EXPECT_FLOAT_EQ(table.cos.f32()[8 * 8 + i], float(rope_amplitude(usual) * std::cos(8 * f)));
    EXPECT_FLOAT_EQ(table.sin.f32()[8 * 8 + i], float(rope_amplitude(usual) * std::sin(8 * f)));
  }
}

// transformers 5: apply_rotary_pos_emb of 1 ... 8 at position 5, theta 10000, FP32: angles up to 5, off by about 12 u of themselves.
TEST(Rope, PairsColumnsAsHuggingFaceDoes) {
  const double want[] = {5.078283786773682,  -1.1213881969451904, 2.6463966369628906, 3.9599502086639404,
                         0.4593867063522339, 6.224346160888672,   7.1411895751953125, 8.019899368286133};
  Stream stream(Device::cpu);
  const Case c{6, {1, 1, 8, 6}};
  const Tensor qkv = stream.zeros({6, 24}, DType::f32);
  for (int i = 0; i < 8; ++i) qkv.f32()[5 * 24 + i] = float(i + 1);
  rope_forward(stream, {.qkv = qkv, .heads = c.heads, .table = rope_table(stream, 6, 8, 10000)});
  for (int i = 0; i < 8; ++i) EXPECT_NEAR(qkv.f32()[5 * 24 + i], want[i], (5 * 12 + 4) * u * 2 * 8) << i;
}

TEST(Rope, TableIsRoundedOnce) {
  Stream stream(Device::cpu);
  const std::int64_t S = 3000, half = 8;
  const RopeTable table = rope_table(stream, S, 2 * half, 10000);
  for (std::int64_t p = 0; p < S; p += 7)
    for (std::int64_t i = 0; i < half; ++i) {
      const double angle = double(p) * rope_frequency(2 * half, i, 10000, {});
      // A double's sine is off by less than 1e-15 here.
      EXPECT_NEAR(table.sin.f32()[p * half + i], std::sin((long double)angle), u * std::abs(std::sin(angle)) + 1e-15);
      EXPECT_NEAR(table.cos.f32()[p * half + i], std::cos((long double)angle), u * std::abs(std::cos(angle)) + 1e-15);
    }
}

TEST(Rope, TurnsQueriesAndKeysWithinTheBoundAndLeavesValues) {
  for (const Case& c : cases)
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
      for (const Kernels& k : kernels()) {
        Stream stream(Device::cpu);
        const Tensor qkv = random(stream, {c.tokens, c.heads.columns()}, dtype, 1);
        const auto before = values_of(qkv);
        k.forward({.qkv = qkv, .heads = c.heads, .table = rope_table(stream, c.heads.sequence, c.heads.head_dim, 10000)});
        expect_rotated(c, qkv, before, 10000, 1);
      }
}

TEST(Rope, BackwardTurnsTheOtherWayIntoTheSinkOrInPlace) {
  for (const Case& c : cases)
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
      for (const Kernels& k : kernels()) {
        Stream stream(Device::cpu);
        const Shape shape{c.tokens, c.heads.columns()};
        const RopeTable table = rope_table(stream, c.heads.sequence, c.heads.head_dim, 10000);
        const Tensor dqkv = random(stream, shape, dtype, 1);
        const auto before = values_of(dqkv);
        Sink apart = make_sink(stream, {.format = dtype}, {.shape = shape, .dtype = dtype});
        k.backward({.dqkv = dqkv, .heads = c.heads, .table = table, .y = apart});
        expect_rotated(c, apart.plain, before, 10000, -1);
        EXPECT_EQ(values_of(dqkv), before);
        Sink in_place = make_sink(stream, {.format = dtype}, {.shape = shape, .dtype = dtype});
        copy(stream, dqkv, in_place.plain);
        k.backward({.dqkv = in_place.plain, .heads = c.heads, .table = table, .y = in_place});
        EXPECT_EQ(values_of(in_place.plain), values_of(apart.plain));
      }
}

TEST(Rope, BackwardOfAHeadIsTheDerivativeOfItsForward) {
  const std::int64_t half = 3;
  const double cosine[] = {0.1, -0.7, 1.0}, sine[] = {0.99, 0.71, 0.0};
  const auto values = gaussian(2 * half, 1), dy = gaussian(2 * half, 2);
  double dx[2 * half], weights[2 * half];
  for (int i = 0; i < 2 * half; ++i) weights[i] = dy[std::size_t(i)];
  rope_head<true>(NumberLane<double>{}, half, weights, cosine, sine, dx);
  for (int i = 0; i < 2 * half; ++i) {
    Dual x[2 * half], y[2 * half], sum;
    for (int j = 0; j < 2 * half; ++j) x[j] = {values[std::size_t(j)], double(i == j)};
    rope_head<false>(NumberLane<Dual>{}, half, x, cosine, sine, y);
    for (int j = 0; j < 2 * half; ++j) sum += y[j] * weights[j];
    EXPECT_NEAR(sum.slope, dx[i], 1e-15);
  }
}

TEST(Rope, FillsAQuantizingSinkWithTheCodesOfItsPlainValues) {
  Stream stream(Device::cpu);
  const QkvShape heads{3, 1, 16, 50};
  const Shape shape{150, heads.columns()};
  const RopeTable table = rope_table(stream, 50, 16, 10000);
  const Tensor dqkv = random(stream, shape, DType::bf16, 1);
  Sink plain = make_sink(stream, {.format = DType::bf16}, {.shape = shape});
  rope_backward(stream, {.dqkv = dqkv, .heads = heads, .table = table, .y = plain});
  const Tensor scale = stream.empty({1}, DType::f32), descale = stream.empty({1}, DType::f32);
  *scale.f32() = 4, *descale.f32() = 0.25f;
  Sink coded = make_sink(stream, {.format = DType::e5m2, .scale = scale, .descale = descale}, {.shape = shape, .cols = true});
  rope_backward(stream, {.dqkv = dqkv, .heads = heads, .table = table, .y = coded});
  for (std::int64_t r = 0; r < shape[0]; ++r)
    for (std::int64_t c = 0; c < shape[1]; ++c) {
      const std::uint8_t want = encode<E5M2>(value_at(plain.plain, r * shape[1] + c) * 4);
      ASSERT_EQ(coded.codes.rows.codes.u8()[r * shape[1] + c], want) << r << ", " << c;
      ASSERT_EQ(coded.codes.cols.codes.u8()[c * shape[0] + r], want) << r << ", " << c;
    }
}

TEST(Rope, RunsDryAndRefusesWrongShapes) {
  std::size_t peak[2];
  for (const Device device : {Device::cpu, Device::null}) {
    Stream stream(device);
    const QkvShape heads{4, 2, 16, 8};
    const Tensor qkv = stream.zeros({16, heads.columns()}, DType::bf16);
    const RopeTable table = rope_table(stream, 8, 16, 10000), table_of_others = rope_table(stream, 7, 16, 10000);
    rope_forward(stream, {.qkv = qkv, .heads = heads, .table = table});
    Sink sink = make_sink(stream, {.format = DType::bf16}, {.shape = qkv.shape});
    rope_backward(stream, {.dqkv = qkv, .heads = heads, .table = table, .y = sink});
    EXPECT_THROW(rope_forward(stream, {.qkv = qkv, .heads = heads, .table = table_of_others}), ContractError);
    EXPECT_THROW(rope_forward(stream, {.qkv = qkv.rows(0, 15), .heads = heads, .table = table}), ContractError);
    QkvShape part = heads;  // 8 rows of 16 tokens, so the table needs 16
    part.part = SequencePart::of_member(16, 0, 2);
    EXPECT_THROW(rope_forward(stream, {.qkv = qkv, .heads = part, .table = table}), ContractError);
    EXPECT_THROW(rope_table(stream, 8, 15, 10000), ContractError);
    peak[device == Device::null] = stream.arena().peak().total;
  }
  EXPECT_EQ(peak[0], peak[1]);
}

}  // namespace
}  // namespace octet::ops
