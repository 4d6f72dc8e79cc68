#include "octet/ops/column_codes/column_codes.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "octet/ops/columns/columns.hpp"
#include "octet/ops/quantize/quantize.hpp"
#include "tests/testing/tensors.hpp"

// Groups of columns against quantize() and dequantize() of a copy of each, which quantize.test.cpp proves.

namespace octet::ops {
namespace {

struct Groups {
  Tensor scales, descales, maxima;
  QuantizeHealth health[3];
  ColumnGroups groups;

  Groups(Stream& stream, DType format, std::initializer_list<std::int64_t> columns)
      : scales(stream.empty({3}, DType::f32)), descales(stream.empty({3}, DType::f32)), maxima(stream.zeros({3}, DType::f32)) {
    constexpr float factors[] = {100, 3, 1.7f};
    std::int64_t i = 0;
    for (const std::int64_t n : columns) {
      scales.f32()[i] = factors[i], descales.f32()[i] = 1 / factors[i];
      ColumnGroup& g = groups[std::size_t(i)];
      g.columns = n, g.spec.format = format, g.spec.scale = scales.rows(i, 1), g.spec.descale = descales.rows(i, 1);
      g.spec.amax = maxima.rows(i, 1), g.spec.health = &health[i], g.spec.measure_noise = true;
      ++i;
    }
  }
};

Tensor some_values(Stream& stream, Shape shape, DType dtype) {
  const Tensor x = testing::gaussian_tensor(stream, shape, 3, dtype, 2);
  for (std::int64_t i = 0; i < x.count(); ++i)
    if (i % 501 == 77) testing::put(x, i, i % 2 == 0 ? std::numeric_limits<float>::quiet_NaN() : 3e5f);
  return x;
}

TEST(ColumnCodes, AreThoseOfEachGroupAloneWithItsMaximumAndHealth) {
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const DType format : {DType::e4m3, DType::e5m2}) {
      Stream stream(Device::cpu);
      Groups g(stream, format, {48, 16, 32});
      const Tensor x = some_values(stream, {37, 96}, dtype), codes = stream.empty(x.shape, format), back = stream.empty(x.shape, dtype);
      encode_columns(stream, x, g.groups, codes), decode_columns(stream, codes, g.groups, back);
      std::int64_t first = 0;
      for (std::size_t i = 0; i < 3; first += g.groups[i++].columns) {
        const std::int64_t n = g.groups[i].columns;
        const Tensor part = stream.empty({37, n}, dtype), decoded = stream.empty({37, n}, dtype);
        copy_columns(stream, {.from = x, .from_column = first, .to = part, .columns = n});
        QuantizeSpec spec = g.groups[i].spec;
        QuantizeHealth health;
        spec.amax = stream.zeros({1}, DType::f32), spec.health = &health;
        Sink sink = make_sink(stream, spec, {.shape = part.shape, .dtype = dtype});
        quantize(stream, part, sink), dequantize(stream, sink.codes.rows, decoded);
        for (std::int64_t t = 0; t < 37; ++t)
          for (std::int64_t c = 0; c < n; ++c) {
            EXPECT_EQ(codes.u8()[t * 96 + first + c], sink.codes.rows.codes.u8()[t * n + c]);
            const float a = value_at(back, t * 96 + first + c), b = value_at(decoded, t * n + c);
            EXPECT_TRUE(a == b || (std::isnan(a) && std::isnan(b))) << a << " " << b;
          }
        EXPECT_EQ(g.maxima.f32()[i], *spec.amax.f32());
        EXPECT_EQ(g.health[i].values, health.values);
        EXPECT_EQ(g.health[i].saturated, health.saturated);
        EXPECT_EQ(g.health[i].flushed, health.flushed);
        EXPECT_EQ(g.health[i].nonfinite, health.nonfinite);
        EXPECT_EQ(g.health[i].scale_max, health.scale_max);
        EXPECT_NEAR(g.health[i].noise, health.noise, 1e-6 * health.noise);
      }
    }
}

TEST(ColumnCodes, MaximaIgnoreNaNAndAreZeroForAnEmptyGroup) {
  Stream stream(Device::cpu);
  Groups g(stream, DType::e4m3, {16, 8});
  const Tensor x = some_values(stream, {50, 24}, DType::bf16), maxima = stream.empty({3}, DType::f32);
  column_maxima(stream, x, g.groups, maxima);
  float wanted[2] = {};
  for (std::int64_t i = 0; i < x.count(); ++i) {
    const float size = std::fabs(value_at(x, i));
    if (size > wanted[i % 24 >= 16]) wanted[i % 24 >= 16] = size;
  }
  EXPECT_EQ(maxima.f32()[0], wanted[0]);
  EXPECT_EQ(maxima.f32()[1], wanted[1]);
  EXPECT_EQ(maxima.f32()[2], 0);
}

TEST(ColumnCodes, OfNoRowsAreNoneAndOtherShapesAreRefused) {
  Stream stream(Device::cpu);
  Groups g(stream, DType::e4m3, {16, 8});
  const auto run = [&](Shape values, Shape codes, DType format) {
    encode_columns(stream, stream.zeros(values, DType::bf16), g.groups, stream.empty(codes, format));
  };
  EXPECT_NO_THROW(run({0, 24}, {0, 24}, DType::e4m3));
  EXPECT_THROW(run({4, 16}, {4, 16}, DType::e4m3), ContractError) << "columns without a group";
  EXPECT_THROW(run({4, 24}, {4, 16}, DType::e4m3), ContractError);
  EXPECT_THROW(run({4, 24}, {4, 24}, DType::e5m2), ContractError) << "another format than the groups'";
}

}  // namespace
}  // namespace octet::ops
