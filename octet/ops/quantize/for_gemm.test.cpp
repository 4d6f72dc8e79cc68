#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <tuple>

#include "octet/ops/gemm/gemm.hpp"
#include "octet/ops/quantize/cases.testing.hpp"
#include "octet/ops/quantize/quantize.kernels.hpp"
#include "octet/tensor/cpu/threads.hpp"
#include "tests/testing/tensors.hpp"

// Operands that gemm() alone reads against the K-contiguous codes of the same values, which quantize.test.cpp proves.

namespace octet::ops {
namespace {

/// Which orientations live how long: x that is kept, dy, a weight that stands, x of an evaluation, x rebuilt for backward.
struct Use {
  const char* name;
  bool rows, cols;
  Lifetime rows_region, cols_region;
  bool cols_left = false;
};
constexpr Use uses[] = {{"kept", true, true, Lifetime::scratch, Lifetime::micro_batch},
                        {"scratch", true, true, Lifetime::scratch, Lifetime::scratch},
                        {"gradient", true, true, Lifetime::scratch, Lifetime::scratch, true},
                        {"standing", true, true, Lifetime::run, Lifetime::run},
                        {"rows", true, false, Lifetime::scratch, Lifetime::scratch},
                        {"rebuilt", false, true, Lifetime::scratch, Lifetime::micro_batch}};

/// Gaussian values, of several magnitudes; `awkward` ones are not all finite, and decoded codes of `tiny` ones may be finer than BF16 near
/// 0.
enum class Kind { plain, awkward, tiny };

/// Inputs of these tests, each made once.
class Inputs {
 public:
  const Tensor& of(Shape shape, DType dtype, Kind kind) {
    Tensor& x = made_[{to_text(shape), dtype, kind}];
    if (!x) fill(x = testing::gaussian_tensor(stream_, shape, 5, dtype), kind);
    return x;
  }

 private:
  static void fill(const Tensor& x, Kind kind) {
    const bool awkward = kind == Kind::awkward;
    const float specials[] = {-0.0f, 0.0f, std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity(), 1e-45f, 3e38f};
    for (std::int64_t i = 0; i < x.count(); ++i) {
      float v = value_at(x, i);
      if (i / 128 % 3 == 1) v *= 1e-3f;
      if (kind == Kind::tiny) v *= 1e-37f;
      if (awkward && i / 128 % 5 == 2) v *= 1e-40f;
      if (awkward && i % 61 == 7) v = specials[i / 61 % 6];
      testing::put(x, i, v);
    }
  }

  Stream stream_{Device::cpu};
  std::map<std::tuple<std::string, DType, Kind>, Tensor> made_;
};
const Tensor& values(Shape shape, DType dtype, Kind kind) {
  static Inputs all;
  return all.of(shape, dtype, kind);
}

struct Made {
  Sink sink;
  QuantizeHealth health;
  float amax = 0;
};

Made made(Stream& stream, const QuantizeCase& c, const Tensor& x, const Use& u, bool for_gemm, DType as = DType::bf16) {
  Made m;
  QuantizeSpec spec = c.spec;
  spec.amax = stream.zeros({1}, DType::f32, Lifetime::run), spec.health = &m.health, spec.measure_noise = true;
  if (c.known) spec.scale = testing::tensor_of(stream, {300}, {1}), spec.descale = testing::tensor_of(stream, {1 / 300.0f}, {1});
  m.sink = make_sink(stream, spec,
                     {.shape = x.shape,
                      .dtype = as,
                      .rows = u.rows,
                      .cols = u.cols,
                      .rows_region = u.rows_region,
                      .cols_region = u.cols_region,
                      .plain = x,
                      .for_gemm = for_gemm,
                      .cols_left = u.cols_left});
  for (const Quantized* q : {&m.sink.codes.rows, &m.sink.codes.cols})
    if (*q) std::memset(q->codes.data, 0xA5, q->codes.bytes());
  quantize(stream, x, m.sink);
  m.amax = *spec.amax.f32();
  return m;
}

/// What the library that multiplies gets: the values of an operand in `type`, beside a factor of the whole.
Quantized multiplied(Stream& stream, const Quantized& q, DType type, float& factor) {
  const bool one = q.descales && q.block.whole_tensor(), descaled = q.power_of_two || !one;
  factor = descaled ? 1.0f : *q.descales.f32();
  Tensor ready = q.codes;
  if (q.codes.dtype != type) {
    ready = stream.empty(q.codes.shape, type);
    OCTET_RUN(decode_operand, q, descaled, ready);
  }
  return {.codes = ready, .transposed = q.transposed};
}

void expect_same_operand(Stream& stream, const Quantized& got, const Quantized& wanted, bool fits_bf16, const std::string& what) {
  ASSERT_EQ(bool(got), bool(wanted)) << what;
  if (!got) return;
  const DType type = fits_bf16 ? stream.target().gemm_compute : DType::f32;
  float factor = 0, wanted_factor = 0;
  const Quantized a = multiplied(stream, got, type, factor), b = multiplied(stream, wanted, type, wanted_factor);
  ASSERT_TRUE(a.rows() == b.rows() && a.cols() == b.cols()) << what;
  const bool same = !a.transposed && !b.transposed && testing::bytes(a.codes) == testing::bytes(b.codes);
  for (std::int64_t r = 0; r < a.rows() && !same; ++r)
    for (std::int64_t c = 0; c < a.cols(); ++c)
      ASSERT_EQ(bits_of(value_at(a, r, c)), bits_of(value_at(b, r, c)))
          << what << " at " << r << ", " << c << ": " << value_at(a, r, c) << " not " << value_at(b, r, c);
  EXPECT_EQ(factor, wanted_factor) << what;
  if (!got.decoded) {
    EXPECT_EQ(testing::bytes(got.descales), testing::bytes(wanted.descales)) << what;
  }
}

void expect_same_health(const QuantizeHealth& h, const QuantizeHealth& w, const std::string& what) {
  EXPECT_EQ(h.values, w.values) << what;
  EXPECT_EQ(h.saturated, w.saturated) << what;
  EXPECT_EQ(h.flushed, w.flushed) << what;
  EXPECT_EQ(h.nonfinite, w.nonfinite) << what;
  EXPECT_EQ(h.scale_min, w.scale_min) << what;
  EXPECT_EQ(h.scale_max, w.scale_max) << what;
  EXPECT_NEAR(h.signal, w.signal, 1e-9 * w.signal) << what;
  EXPECT_NEAR(h.noise, w.noise, 1e-9 * w.noise) << what;
}

/// Codes do not depend on the type of a GEMM, so they are made once for all.
void try_use(const QuantizeCase& c, const Use& u, Shape shape, std::initializer_list<DType> computes, DType stored, Kind kind,
             DType as = DType::bf16) {
  const Tensor& x = values(shape, stored, kind);
  Stream codes(Device::cpu);
  const Made wanted = made(codes, c, x, u, false, as);
  for (const DType compute : computes) {
    const std::string what =
        format("{}, {}, {} for {}, {}, kind {}", std::string_view(c.name), std::string_view(u.name), shape, compute, stored, int(kind));
    Stream stream(Device::cpu, {.gemm_compute = compute});
    const Made got = made(stream, c, x, u, true, as);
    expect_same_operand(stream, got.sink.codes.rows, wanted.sink.codes.rows, c.spec.fits_bf16(c.spec.rows), what + ", rows");
    expect_same_operand(stream, got.sink.codes.cols, wanted.sink.codes.cols, c.spec.fits_bf16(c.spec.cols), what + ", columns");
    EXPECT_EQ(got.amax, wanted.amax) << what;
    expect_same_health(got.health, wanted.health, what);
  }
}

TEST(ForGemm, OperandsAreMultipliedAsTheirCodesWouldBe) {
  for (const QuantizeCase& c : quantize_cases())
    for (const Use& u : uses)
      for (const Kind kind : {Kind::plain, Kind::awkward, Kind::tiny})
        for (const Shape shape : {Shape{256, 384}, Shape{0, 5}, Shape{1, 7}, Shape{129, 257}, Shape{300, 31}})
          try_use(c, u, shape, {DType::f32, DType::bf16}, DType::bf16, kind);
}

TEST(ForGemm, FloatsAreQuantizedLikeBf16) {
  for (const QuantizeCase& c : quantize_cases()) try_use(c, uses[3], {256, 200}, {DType::f32, DType::bf16}, DType::f32, Kind::plain);
}

// The code of a BF16 number times its descale is one; that of a float may lie between two.
TEST(ForGemm, TinyFloatsAreRoundedToBf16) {
  for (const QuantizeCase& c : quantize_cases())
    for (const Use& u : uses) try_use(c, u, {256, 384}, {DType::bf16}, DType::f32, Kind::tiny, DType::f32);
}

// Tiles have fewer rows where there are many threads, and strips of columns go to several.
TEST(ForGemm, NothingDependsOnTheNumberOfThreads) {
  const int before = cpu::threads();
  for (const int threads : {1, 3, 16}) {
    cpu::set_threads(threads);
    for (const QuantizeCase& c : quantize_cases())
      for (const Shape shape : {Shape{256, 384}, Shape{130, 257}, Shape{40, 700}}) {
        Stream stream(Device::cpu, {.gemm_compute = DType::bf16});
        const Tensor& x = values(shape, DType::bf16, Kind::plain);
        for (const auto& [use, for_gemm] : {std::pair(uses[0], false), {uses[0], true}, {uses[2], true}}) {
          cpu::set_threads(threads);
          const Made some = made(stream, c, x, use, for_gemm);
          cpu::set_threads(2);
          const Made two = made(stream, c, x, use, for_gemm);
          for (const auto& [a, b] : {std::pair(some.sink.codes.rows, two.sink.codes.rows), {some.sink.codes.cols, two.sink.codes.cols}}) {
            ASSERT_EQ(testing::bytes(a.codes), testing::bytes(b.codes)) << c.name << ", " << to_text(shape) << ", " << threads;
            if (a.descales) {
              ASSERT_EQ(testing::bytes(a.descales), testing::bytes(b.descales)) << c.name << ", " << to_text(shape) << ", " << threads;
            }
          }
          ASSERT_EQ(some.amax, two.amax) << c.name;
          ASSERT_EQ(some.health.flushed, two.health.flushed) << c.name;
          ASSERT_EQ(some.health.scale_min, two.health.scale_min) << c.name;
        }
      }
  }
  cpu::set_threads(before);
}

/// Bytes of codes, or values, and descales.
std::int64_t bytes_of(const Sink& s) {
  const auto of = [](const Tensor& t) { return t ? std::int64_t(t.bytes()) : 0; };
  const QTensor& q = s.codes;
  return of(q.rows.codes) + of(q.rows.descales) + (q.cols.codes.data == q.rows.codes.data ? 0 : of(q.cols.codes)) +
         (q.cols.descales.data == q.rows.descales.data ? 0 : of(q.cols.descales));
}

TEST(ForGemm, WhatStandsTakesNoMoreBytesThanItsCodes) {
  for (const QuantizeCase& c : quantize_cases())
    for (const DType compute : {DType::f32, DType::bf16})
      for (const Use& u : {uses[3], uses[5]}) {
        Stream stream(Device::cpu, {.gemm_compute = compute});
        const Tensor& x = values({256, 384}, DType::bf16, Kind::plain);
        EXPECT_LE(bytes_of(made(stream, c, x, u, true).sink), bytes_of(made(stream, c, x, u, false).sink)) << c.name << ", " << u.name;
      }
}

TEST(ForGemm, OneMatrixIsBothOrientationsOfAStandingWeight) {
  for (const DType compute : {DType::f32, DType::bf16}) {
    Stream stream(Device::cpu, {.gemm_compute = compute});
    const SinkRequest standing{
        .shape = {64, 32}, .cols = true, .rows_region = Lifetime::run, .cols_region = Lifetime::run, .for_gemm = true};
    const Sink sink = make_sink(stream, {.format = DType::e4m3}, standing);
    const bool one = compute == DType::bf16;  // one of f32 would take more than the codes of both
    EXPECT_EQ(sink.codes.rows.codes.data == sink.codes.cols.codes.data, one);
    EXPECT_EQ(sink.codes.cols.transposed, one);
    EXPECT_EQ(sink.codes.rows.codes.dtype, one ? DType::bf16 : DType::e4m3);
    EXPECT_TRUE(!sink.codes.rows.transposed && sink.codes.rows.eight_bit());
  }
}

TEST(ForGemm, AGpuGetsContiguousCodes) {
  Stream dry(Device::null, {.device = Device::cuda, .multiprocessors = 132});
  const Sink sink = make_sink(dry, {.format = DType::e4m3}, {.shape = {64, 32}, .cols = true, .for_gemm = true});
  EXPECT_FALSE(sink.codes.cols.transposed || sink.codes.rows.decoded);
  EXPECT_EQ(sink.codes.cols.codes.shape, (Shape{32, 64}));
}

TEST(ForGemm, ProductsAreThoseOfTheCodes) {
  for (const QuantizeCase& c : quantize_cases()) {
    Stream stream(Device::cpu);
    const Tensor &x = values({96, 160}, DType::bf16, Kind::plain), &w = values({48, 160}, DType::bf16, Kind::plain);
    const auto product = [&](bool for_gemm, Lifetime region) {
      const Use use{"", true, true, region, region, region == Lifetime::scratch};
      const Made a = made(stream, c, x, use, for_gemm), b = made(stream, c, w, use, for_gemm);
      const Tensor y = stream.empty({96, 48}, DType::f32), dw = stream.empty({160, 160}, DType::f32);
      gemm(stream, {.a = a.sink.codes.rows, .b = b.sink.codes.rows, .d = y});
      gemm(stream, {.a = a.sink.codes.cols, .b = a.sink.codes.cols, .d = dw});
      std::vector<double> out = testing::values(y);
      for (const double v : testing::values(dw)) out.push_back(v);
      return out;
    };
    const std::vector<double> wanted = product(false, Lifetime::scratch);
    double largest = 0;
    for (const double v : wanted) largest = std::max(largest, std::fabs(v));
    for (const Lifetime region : {Lifetime::scratch, Lifetime::run}) {
      const std::vector<double> got = product(true, region);
      for (std::size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], wanted[i], 1e-5 * largest) << c.name << " at " << i;
    }
  }
}

}  // namespace
}  // namespace octet::ops
