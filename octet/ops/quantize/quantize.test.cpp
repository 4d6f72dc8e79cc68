#include "octet/ops/quantize/quantize.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "octet/ops/quantize/cases.testing.hpp"
#include "octet/ops/quantize/quantize.kernels.hpp"
#include "octet/tensor/cpu/threads.hpp"
#include "tests/testing/code_table.hpp"
#include "tests/testing/tensors.hpp"

// The reference is written from the prose of the formats and recipes: value tables, std::frexp and plain loops, none of our formulas.

namespace octet::ops {
namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();

// ---- Reference: one value.

const testing::CodeTable& table(DType format) { return format == DType::e4m3 ? testing::CodeTable::e4m3() : testing::CodeTable::e5m2(); }
double largest(DType format) { return table(format).finite().back(); }
/// To the nearest value of a format that went on beyond its largest with the same step, or twice that: ties to even.
double rounded_without_end(DType format, float y) {
  const auto& values = table(format).finite();
  const double step = values.back() - values[values.size() - 2];
  return std::nearbyint(std::fabs(double(y)) / step) * step;
}

// ---- Reference: one block.

struct RefScale {
  float scale = 1, descale = 1;
  std::uint8_t code = 0;
};

RefScale ref_scale(ScaleRule rule, DType format, float amax, float overflow) {
  const float fmax = float(largest(format));
  RefScale s;
  if (rule == ScaleRule::e8m0) {
    const float q = amax * (1.0f / fmax);
    int exponent = -127;  // the least with 2^exponent >= q
    while (exponent < 127 && std::ldexp(1.0, exponent) < double(q)) ++exponent;
    // 2^-127 replaces all values up to half of the least normal number.
    s.code = std::uint8_t(exponent + 127);
    s.scale = float(std::ldexp(1.0, -exponent)), s.descale = float(std::ldexp(1.0, exponent));
    return s;
  }
  if (amax == 0 || std::isinf(amax)) return s;
  s.scale = fmax / amax;
  if (std::isinf(s.scale)) s.scale = overflow;
  if (rule == ScaleRule::power_of_two) {
    int exponent;
    std::frexp(s.scale, &exponent);
    s.scale = std::ldexp(1.0f, exponent - 1);
  }
  s.descale = float(1.0 / double(s.scale));
  return s;
}

// ---- Reference: one orientation, a matrix [rows, cols] given by element.

struct Matrix {
  std::int64_t rows, cols;
  std::vector<float> x;
  float at(std::int64_t r, std::int64_t c) const { return x[std::size_t(r * cols + c)]; }
  Matrix transposed() const {
    Matrix t{cols, rows, std::vector<float>(x.size())};
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t c = 0; c < cols; ++c) t.x[std::size_t(c * rows + r)] = at(r, c);
    return t;
  }
};

struct Reference {
  Bytes codes, descales;
  std::int64_t saturated = 0, flushed = 0, nonfinite = 0;
  float amax = 0, scale_min = infinity, scale_max = 0;
  std::vector<double> scales = {};  // of each block that is not all zeros, or of each row
  std::int64_t blocks = 0;
  std::int64_t lossy = 0;  // blocks
};

Reference ref_quantize(const Matrix& m, const QuantizeSpec& spec, ScaleBlock block, DType source) {
  const testing::CodeTable& codes = table(spec.format);
  Reference ref;
  ref.codes.resize(m.x.size());
  const std::int64_t br = block.rows ? block.rows : std::max<std::int64_t>(m.rows, 1),
                     bc = block.cols ? block.cols : std::max<std::int64_t>(m.cols, 1);
  const bool e8m0 = spec.rule == ScaleRule::e8m0 && !spec.scale_known();
  const Shape layout = descale_shape(block, e8m0 ? DType::e8m0 : DType::f32, m.rows, m.cols);
  std::vector<float> descales(std::size_t(layout.count()), 1.0f);
  Bytes descale_codes(std::size_t(layout.count()), 0);
  const float overflow = source == DType::bf16 && !block.whole_tensor() ? 0x1.fep127f : std::numeric_limits<float>::max();
  const std::int64_t block_rows = block.whole_tensor() ? 1 : (m.rows + br - 1) / br,
                     block_cols = block.cols == 0 ? 1 : (m.cols + bc - 1) / bc;
  for (std::int64_t i = 0; i < block_rows; ++i)
    for (std::int64_t j = 0; j < block_cols; ++j) {
      float amax = 0;
      const auto each = [&](const auto& f) {
        for (std::int64_t r = i * br; r < std::min(m.rows, (i + 1) * br); ++r)
          for (std::int64_t c = j * bc; c < std::min(m.cols, (j + 1) * bc); ++c) f(r, c);
      };
      each([&](auto r, auto c) {
        if (std::fabs(m.at(r, c)) > amax) amax = std::fabs(m.at(r, c));
      });
      RefScale s = ref_scale(spec.rule, spec.format, amax, overflow);
      if (spec.scale_known()) s.scale = *spec.scale.f32(), s.descale = *spec.descale.f32();
      ref.amax = std::max(ref.amax, amax), ref.scale_min = std::min(ref.scale_min, s.scale),
      ref.scale_max = std::max(ref.scale_max, s.scale);
      // The layouts of tensor.hpp, in words: blocks of K first for f32 vectors along rows, otherwise row blocks first.
      const bool k_first = !e8m0 && block.rows == 1 && block.cols > 0;
      const std::size_t at = std::size_t(block.whole_tensor() ? 0 : block.cols == 0 ? i : k_first ? j * layout[1] + i : i * layout[1] + j);
      descales[at] = s.descale, descale_codes[at] = s.code;
      const std::int64_t lost = ref.saturated + ref.flushed;
      each([&](auto r, auto c) {
        const float x = m.at(r, c), y = x * s.scale;
        const std::uint8_t code = codes.encode(y);
        ref.codes[std::size_t(r * m.cols + c)] = code;
        ref.saturated += rounded_without_end(spec.format, y) > largest(spec.format);
        ref.flushed += x != 0 && (code & 0x7F) == 0;
        ref.nonfinite += !std::isfinite(x);
      });
      if (amax > 0 || block.whole_rows()) ref.scales.push_back(s.scale);
      ++ref.blocks, ref.lossy += ref.saturated + ref.flushed > lost;
    }
  if (e8m0) ref.descales = descale_codes;
  else
    ref.descales.assign(reinterpret_cast<std::uint8_t*>(descales.data()),
                        reinterpret_cast<std::uint8_t*>(descales.data() + descales.size()));
  return ref;
}

// ---- What is tried: quantize_cases().

// Gaussian values with a sprinkle of what breaks quantizers.
Matrix awkward(std::int64_t rows, std::int64_t cols, std::uint64_t seed, DType dtype) {
  Matrix m{rows, cols, testing::gaussian(std::size_t(rows * cols), seed)};
  const float specials[] = {0.0f, -0.0f, nan, -nan, 1e-45f, -1e-40f, 1e-30f, 1e10f, -3e38f, 448.0f, 449.0f, 0x1p-9f, 0x1p-10f};
  for (std::size_t i = 0; i < m.x.size(); ++i) {
    const RandomWords r = philox(seed + 1, i);
    if (r.w[0] % 67 == 0) m.x[i] = specials[r.w[1] % std::size(specials)];
    if (r.w[0] % 4099 == 1) m.x[i] = infinity;
    if ((i / 128) % 5 == 1) m.x[i] = 0;
    if ((i / 128) % 5 == 2) m.x[i] *= 1e-20f;
    if ((i / 128) % 5 == 3) m.x[i] *= 1e-42f;
  }
  if (dtype == DType::bf16)
    for (float& x : m.x) x = to_float(to_bf16(x));
  return m;
}

Tensor upload(Stream& stream, const Matrix& m, DType dtype) {
  const Tensor t = stream.empty({m.rows, m.cols}, dtype, Lifetime::run);
  for (std::size_t i = 0; i < m.x.size(); ++i) {
    if (dtype == DType::bf16) t.bf16()[i] = to_bf16(m.x[i]);
    else t.f32()[i] = m.x[i];
  }
  return t;
}

QuantizeSpec ready(Stream& stream, const QuantizeCase& c, QuantizeHealth* health) {
  QuantizeSpec spec = c.spec;
  spec.amax = stream.zeros({1}, DType::f32, Lifetime::run), spec.health = health;
  if (c.known) {
    spec.scale = stream.zeros({1}, DType::f32, Lifetime::run), spec.descale = stream.zeros({1}, DType::f32, Lifetime::run);
    *spec.scale.f32() = 37.7f, *spec.descale.f32() = 1.0f / 37.7f;
  }
  return spec;
}

Bytes bytes_of(const Tensor& t) { return Bytes(t.u8(), t.u8() + t.bytes()); }

void expect_same(const Quantized& q, const Reference& ref, const std::string& what, bool known) {
  ASSERT_EQ(q.codes.bytes(), ref.codes.size()) << what;
  std::size_t wrong = 0, first = 0;
  for (std::size_t i = 0; i < ref.codes.size(); ++i)
    if (q.codes.u8()[i] != ref.codes[i] && wrong++ == 0) first = i;
  EXPECT_EQ(wrong, 0u) << what << ": first wrong code at " << first << ": " << int(q.codes.u8()[first]) << " not " << int(ref.codes[first]);
  if (!known) {
    EXPECT_EQ(bytes_of(q.descales), ref.descales) << what << ": descales";
  }
}

const std::vector<Shape> shapes = {{1, 1}, {1, 7}, {3, 0}, {0, 5}, {16, 16}, {33, 130}, {129, 257}, {320, 64}, {256, 384}, {300, 31}};

void fill_garbage(const Sink& sink) {
  for (const Quantized* q : {&sink.codes.rows, &sink.codes.cols})
    if (*q) std::memset(q->codes.data, 0xA5, q->codes.bytes());
  for (const Quantized* q : {&sink.codes.rows, &sink.codes.cols})
    if (*q && !sink.spec.scale_known()) std::memset(q->descales.data, 0xA5, q->descales.bytes());
}

void try_case(const QuantizeCase& c, const Shape& shape, DType dtype, bool rows, bool cols, bool count = true) {
  const std::string what = format("{} {} {}{}{}", std::string_view(c.name), shape, dtype, rows ? " rows" : "", cols ? " cols" : "");
  Stream stream(Device::cpu);
  QuantizeHealth health;
  QuantizeSpec spec = ready(stream, c, &health);
  spec.count = count;
  const Matrix m = awkward(shape[0], shape[1], 7, dtype);
  const Tensor x = upload(stream, m, dtype);
  Sink sink = make_sink(stream, spec, {.shape = shape, .dtype = dtype, .rows = rows, .cols = cols});
  fill_garbage(sink);
  quantize(stream, x, sink);
  const Reference by_rows = ref_quantize(m, spec, spec.rows, dtype), by_cols = ref_quantize(m.transposed(), spec, spec.cols, dtype);
  if (rows) expect_same(sink.codes.rows, by_rows, what + " (rows)", c.known);
  if (cols) expect_same(sink.codes.cols, by_cols, what + " (columns)", c.known);
  const Reference& counted = rows ? by_rows : by_cols;
  EXPECT_EQ(*spec.amax.f32(), counted.amax) << what;
  EXPECT_EQ(health.values, shape.count()) << what;
  EXPECT_EQ(health.saturated, count ? counted.saturated : 0) << what;
  EXPECT_EQ(health.flushed, count ? counted.flushed : 0) << what;
  EXPECT_EQ(health.nonfinite, counted.nonfinite) << what;
  if (shape.count() != 0) {
    EXPECT_EQ(health.scale_min, counted.scale_min) << what;
    EXPECT_EQ(health.scale_max, counted.scale_max) << what;
  }
}

TEST(Quantize, EveryLayoutEqualsTheReferenceBitForBit) {
  for (const QuantizeCase& c : quantize_cases())
    for (const Shape& s : shapes) try_case(c, s, DType::bf16, true, true);
}

TEST(Quantize, FloatsAreQuantizedLikeBf16) {
  for (const QuantizeCase& c : quantize_cases())
    for (const Shape& s : {Shape{129, 257}, Shape{1, 7}}) try_case(c, s, DType::f32, true, true);
}

TEST(Quantize, OneOrientationAloneGivesTheSame) {
  for (const QuantizeCase& c : quantize_cases())
    for (const bool rows : {false, true}) try_case(c, {130, 161}, DType::bf16, rows, !rows);
}

TEST(Quantize, WhereNothingIsCountedAllElseIsTheSame) {
  for (const QuantizeCase& c : quantize_cases()) try_case(c, {130, 161}, DType::bf16, true, true, false);
}

/// Standard deviation of log2 of the scales, by two passes.
double deviation_of(const std::vector<double>& scales) {
  double mean = 0, squares = 0;
  for (const double s : scales) mean += std::log2(s) / double(scales.size());
  for (const double s : scales) squares += (std::log2(s) - mean) * (std::log2(s) - mean) / double(scales.size());
  return std::sqrt(squares);
}

TEST(Quantize, BlocksAreMeasuredWithTheSquares) {
  for (const QuantizeCase& c : quantize_cases())
    for (const Shape& shape : {Shape{1, 7}, Shape{33, 130}, Shape{256, 384}, Shape{300, 31}})
      for (const bool cols : {false, true}) {
        const std::string what = format("{} {}{}", std::string_view(c.name), shape, cols ? " both" : "");
        Stream stream(Device::cpu);
        QuantizeHealth health;
        QuantizeSpec spec = ready(stream, c, &health);
        const Matrix m = awkward(shape[0], shape[1], 7, DType::bf16);
        const SinkRequest want{.shape = shape, .cols = cols};
        Sink unmeasured = make_sink(stream, spec, want);
        quantize(stream, upload(stream, m, DType::bf16), unmeasured);
        EXPECT_EQ(health.blocks.scales, 0) << what;
        spec.measure_noise = true;
        Sink sink = make_sink(stream, spec, want);
        quantize(stream, upload(stream, m, DType::bf16), sink);
        const Reference ref = ref_quantize(m, spec, spec.rows, DType::bf16);
        const bool several = !spec.rows.whole_tensor(), compared = several && !spec.rows.whole_rows();
        EXPECT_EQ(health.blocks.scales, several ? std::int64_t(ref.scales.size()) : 0) << what;
        EXPECT_EQ(health.blocks.blocks, compared ? ref.blocks : 0) << what;
        EXPECT_EQ(health.blocks.lossy, compared ? ref.lossy : 0) << what;
        // Each logarithm is rounded by at most half a unit, and computed within 2^-16; the deviation of these errors is at most as large.
        if (several && !ref.scales.empty())
          EXPECT_NEAR(health.blocks.scale_deviation(), deviation_of(ref.scales), 0.5 / BlockHealth::units + 0x1p-16) << what;
        else EXPECT_TRUE(std::isnan(health.blocks.scale_deviation())) << what;
      }
}

/// FP16 codes of any kind times 2^exponent, and their values in f32.
struct ScaledPair {
  Stored f16;
  Tensor f32;
};
ScaledPair scaled_pair(Stream& stream, Shape shape, int exponent) {
  ScaledPair out{.f16 = {.codes = stream.empty(shape, DType::f16), .scales = stream.empty({2}, DType::f32), .storage = Storage::f16},
                 .f32 = stream.empty(shape, DType::f32)};
  out.f16.scales.f32()[0] = std::ldexp(1.0f, exponent);
  const Matrix m = awkward(shape[0], shape[1], 11, DType::f32);
  for (std::size_t i = 0; i < m.x.size(); ++i) {
    const Fp16 code = i % 97 == 5 ? Fp16{std::uint16_t(i)} : to_fp16(m.x[i]);
    out.f16.codes.as<Fp16>()[i] = code;
    out.f32.f32()[i] = std::ldexp(to_float(code), exponent);
  }
  return out;
}

TEST(Quantize, CodesInFp16AreQuantizedAsTheirValuesInF32) {
  for (const QuantizeCase& c : quantize_cases())
    for (const Shape shape : {Shape{1, 7}, Shape{0, 5}, Shape{130, 264}, Shape{257, 129}})
      for (const int exponent : {0, -19, 30})
        for (auto* const kernel : testing::kernels(cpu::v3::quantize, cpu::v4::quantize)) {
          Stream stream(Device::cpu);
          const ScaledPair x = scaled_pair(stream, shape, exponent);
          QuantizeHealth health[2];
          Sink sinks[2];
          for (int i = 0; i < 2; ++i) {
            QuantizeSpec spec = ready(stream, c, &health[i]);
            spec.measure_noise = true;
            sinks[i] = make_sink(stream, spec, {.shape = shape, .dtype = DType::f32, .cols = true});
            fill_garbage(sinks[i]);
          }
          kernel(x.f16.codes, sinks[0], x.f16.tensor_descale());
          kernel(x.f32, sinks[1], {});
          const std::string what = format("{} {} 2^{}", std::string_view(c.name), shape, exponent);
          for (const auto side : {&QTensor::rows, &QTensor::cols}) {
            ASSERT_EQ(bytes_of((sinks[0].codes.*side).codes), bytes_of((sinks[1].codes.*side).codes)) << what;
            ASSERT_EQ(bytes_of((sinks[0].codes.*side).descales), bytes_of((sinks[1].codes.*side).descales)) << what;
          }
          ASSERT_EQ(*sinks[0].spec.amax.f32(), *sinks[1].spec.amax.f32()) << what;
          ASSERT_EQ(std::memcmp(&health[0], &health[1], sizeof health[0]), 0) << what << ": health";
        }
}

TEST(Quantize, ValuesWithAScaleGoToSinksOfF32AndToPlainOnes) {
  Stream stream(Device::cpu);
  const ScaledPair x = scaled_pair(stream, {33, 130}, -7);
  Sink narrow = make_sink(stream, {.format = DType::e4m3}, {.shape = {33, 130}, .dtype = DType::bf16});
  EXPECT_THROW(quantize(stream, x.f16, narrow), ContractError);
  for (const DType dtype : {DType::bf16, DType::f32}) {
    Sink plain = make_sink(stream, {.format = dtype}, {.shape = {33, 130}, .dtype = dtype});
    quantize(stream, x.f16, plain);
    for (std::int64_t i = 0; i < x.f32.count(); ++i) {
      const float wanted = dtype == DType::bf16 ? to_float(to_bf16(x.f32.f32()[i])) : x.f32.f32()[i];
      ASSERT_EQ(bits_of(value_at(plain.plain, i)), bits_of(wanted)) << i;
    }
  }
}

// For 0x1.86p-5, say, 448 / amax, rounded, times amax is one rounding above 448. A text that repeats one token has many such values.
TEST(Quantize, AMaximumThatRoundsToTheLargestValueIsNotCountedAsSaturated) {
  for (const DType format : {DType::e4m3, DType::e5m2})
    for (int i = 0; i < 128; ++i) {
      const float amax = float_of(0x3D000000u + (std::uint32_t(i) << 16));
      Stream stream(Device::cpu);
      QuantizeHealth health;
      const Matrix m{8, 16, std::vector<float>(128, amax)};
      Sink sink = make_sink(stream, {.format = format, .health = &health}, {.shape = {8, 16}});
      quantize(stream, upload(stream, m, DType::bf16), sink);
      EXPECT_EQ(health.saturated, 0) << amax;
    }
}

TEST(Quantize, WhatWouldRoundBeyondTheLargestValueIsCountedAsSaturated) {
  const auto saturated = [](DType format, float value) {
    Stream stream(Device::cpu);
    QuantizeHealth health;
    QuantizeSpec spec{.format = format, .health = &health};
    spec.scale = spec.descale = upload(stream, {1, 1, {1.0f}}, DType::f32).reshaped({1});
    Sink sink = make_sink(stream, spec, {.shape = {1, 3}, .dtype = DType::f32});
    quantize(stream, upload(stream, {1, 3, {value, -value, 1.0f}}, DType::f32), sink);
    return health.saturated;
  };
  const auto above = [](float x) { return std::nextafter(x, infinity); };
  const auto below = [](float x) { return std::nextafter(x, 0.0f); };
  EXPECT_EQ(saturated(DType::e4m3, 464.0f), 0) << "half way goes to the even neighbour, 448";
  EXPECT_EQ(saturated(DType::e4m3, above(464.0f)), 2);
  EXPECT_EQ(saturated(DType::e5m2, below(61440.0f)), 0);
  EXPECT_EQ(saturated(DType::e5m2, 61440.0f), 2) << "half way goes to the even neighbour, beyond 57344";
}

}  // namespace
}  // namespace octet::ops
