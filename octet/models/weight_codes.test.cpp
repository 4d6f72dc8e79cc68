#include "octet/models/weight_codes.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "octet/numerics/formats.hpp"
#include "octet/ops/quantize/quantize.hpp"

namespace octet::models {
namespace {

constexpr std::int64_t rows = 200, columns = 272;

/// Values of many sizes; some blocks and rows are zeros.
std::vector<float> some_values(unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> out(std::size_t(rows * columns));
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = normal(random) * std::ldexp(1.0f, int(i / 300 % 40) - 30);
  for (std::size_t i = 0; i < std::size_t(columns); ++i) out[i] = 0;
  return out;
}

struct Scheme {
  ScaleBlock block;
  ScaleRule rule;
};
constexpr Scheme schemes[] = {{{128, 128}, ScaleRule::power_of_two},
                              {{1, 0}, ScaleRule::power_of_two},
                              {{128, 128}, ScaleRule::quotient},
                              {{1, 0}, ScaleRule::quotient},
                              {{}, ScaleRule::quotient}};

std::vector<float> decoded(const WeightCodes& made, const Scheme& s) {
  std::vector<float> out(made.codes.size());
  decode_weights(made.codes, made.descales, columns, s.block, out);
  return out;
}

TEST(WeightCodes, TheyAreTheBitsOfTheQuantizersOfTraining) {
  std::vector<float> values = some_values(1);
  for (const Scheme& s : schemes) {
    const WeightCodes made = encode_weights(values, columns, s.block, s.rule);
    Stream stream(Device::cpu);
    ops::QuantizeSpec spec;
    spec.format = DType::e4m3, spec.rule = s.rule, spec.rows = spec.cols = s.block;
    const Tensor x{values.data(), {rows, columns}, DType::f32};
    ops::Sink sink = ops::make_sink(stream, spec, {.shape = x.shape, .dtype = DType::f32, .plain = x});
    ops::quantize(stream, x, sink);
    const Quantized& q = sink.codes.rows;
    EXPECT_EQ(std::memcmp(made.codes.data(), q.codes.data, made.codes.size()), 0) << to_text(s.block);
    const std::int64_t wide = blocks_of(columns, s.block.cols);
    const DescaleStride stride = descale_stride(s.block, DType::f32, rows, columns);
    ASSERT_EQ(std::int64_t(made.descales.size()), blocks_of(rows, s.block.rows) * wide);
    for (std::size_t i = 0; i < made.descales.size(); ++i) {
      const std::int64_t at = std::int64_t(i) / wide * stride.row_block + std::int64_t(i) % wide * stride.col_block;
      EXPECT_EQ(made.descales[i], q.descales.f32()[at]) << to_text(s.block) << " block " << i;
    }
  }
}

TEST(WeightCodes, DecodedAndEncodedAgainTheyAreTheSameBits) {
  for (unsigned seed = 1; seed < 60; ++seed)
    for (const Scheme& s : schemes) {
      const WeightCodes made = encode_weights(some_values(seed), columns, s.block, s.rule);
      const WeightCodes again = encode_weights(decoded(made, s), columns, s.block, s.rule);
      ASSERT_EQ(again.descales, made.descales) << to_text(s.block) << " seed " << seed;
      ASSERT_EQ(again.codes, made.codes) << to_text(s.block) << " seed " << seed;
    }
}

TEST(WeightCodes, ABlockWhoseLargestCodeIsHalfOfTheFormatKeepsItsScale) {
  std::vector<float> values(128, 1.0f);
  values[5] = -228.0f;  // of the scale 1: code 224, from which alone the scale would be 2
  const Scheme s = schemes[0];
  const WeightCodes made = encode_weights(values, 128, s.block, s.rule);
  ASSERT_EQ(made.descales, std::vector{1.0f});
  std::vector<float> back(128);
  decode_weights(made.codes, made.descales, 128, s.block, back);
  EXPECT_EQ(back[5], std::nextafter(-224.0f, -INFINITY));
  EXPECT_EQ(back[6], 1.0f);
  EXPECT_EQ(encode_weights(back, 128, s.block, s.rule).codes, made.codes);
}

TEST(WeightCodes, OfOtherScalesValuesAreCodesTimesScales) {
  std::vector<std::byte> codes(256);
  for (std::size_t i = 0; i < 256; ++i) codes[i] = std::byte((i & 0x7F) == 0x7F ? 0 : i);
  std::vector<float> back(256);
  const float scales[] = {0.0123f};
  decode_weights(codes, scales, 256, {128, 256}, back);
  for (std::size_t i = 0; i < 256; ++i) EXPECT_EQ(back[i], decode<E4M3>(std::uint8_t(codes[i])) * 0.0123f) << i;
}

}  // namespace
}  // namespace octet::models
