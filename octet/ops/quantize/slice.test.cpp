#include "octet/ops/quantize/slice.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "octet/ops/quantize/cases.testing.hpp"
#include "octet/ops/quantize/quantize.hpp"
#include "octet/ops/stored/stored.hpp"
#include "tests/testing/tensors.hpp"

// Slices of a matrix, encoded one by one, against quantize() of the whole, which quantize.test.cpp proves.

namespace octet::ops {
namespace {

std::vector<QuantizeCase> cases() {
  std::vector<QuantizeCase> out;
  for (const QuantizeCase& c : quantize_cases())
    if (c.spec.encodes_slices()) out.push_back(c);
  return out;
}

/// Values of several magnitudes from row to row, stored in `storage`; `odd` ones are not all finite.
Stored values_of(Stream& stream, Shape shape, Storage storage, bool odd) {
  const Tensor x = testing::gaussian_tensor(stream, shape, 5, DType::f32);
  const float specials[] = {-0.0f, 0.0f, std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity(), 1e-45f, 3e38f};
  for (std::int64_t i = 0; i < x.count(); ++i) {
    float& v = x.f32()[i];
    if (i / shape[1] % 3 == 1) v *= 1e-3f;
    if (odd && i % 1009 == 77) v = specials[i / 1009 % 6];
  }
  Stored out{.codes = stream.empty(shape, code_type(storage)), .storage = storage};
  if (scales_tensor(storage)) out.scales = stream.zeros({2}, DType::f32);
  encode_stored(stream, x, out);
  return out;
}

struct Measured {
  Tensor amax;
  QuantizeHealth health;
  explicit Measured(Stream& stream) : amax(stream.zeros({1}, DType::f32)) {}
  QuantizeSpec of(QuantizeSpec spec) {
    spec.amax = amax, spec.health = &health, spec.measure_noise = true;
    return spec;
  }
};

void expect_same_health(const QuantizeHealth& got, const QuantizeHealth& wanted, const std::string& what) {
  EXPECT_EQ(got.values, wanted.values) << what;
  EXPECT_EQ(got.saturated, wanted.saturated) << what;
  EXPECT_EQ(got.flushed, wanted.flushed) << what;
  EXPECT_EQ(got.nonfinite, wanted.nonfinite) << what;
  EXPECT_EQ(got.scale_min, wanted.scale_min) << what;
  EXPECT_EQ(got.scale_max, wanted.scale_max) << what;
  EXPECT_NEAR(got.signal, wanted.signal, 1e-12 * std::fabs(wanted.signal)) << what;
  EXPECT_NEAR(got.noise, wanted.noise, 1e-12 * std::fabs(wanted.noise)) << what;
}

/// Codes and descales by slices.
struct Sliced {
  Tensor codes, descales;
};
Sliced by_slices(Stream& stream, const Stored& x, const QuantizeSpec& spec, int parts, Measured& seen) {
  const Shape shape = x.shape();
  const std::int64_t n = shape.count(), part = round_up(ceil_div(n, parts), storage_block);
  const Stored flat{.codes = x.codes.reshaped({n}), .scales = x.scales, .storage = x.storage};
  const auto slice = [&](std::int64_t first) {
    const std::int64_t from = std::min(first, n), to = std::min(first + part, n);
    return StoredSlice{{.codes = flat.codes.rows(from, to - from), .scales = x.scales, .storage = x.storage}, shape, from};
  };
  const Shape table = descale_shape(spec.rows, DType::f32, shape[0], shape[1]);
  const Sliced out{stream.empty({n}, spec.format), stream.empty(table, DType::f32)};
  const Tensor joined = stream.zeros(table, DType::f32), own = stream.empty(table, DType::f32);
  for (std::int64_t first = 0; first < n && !spec.scale_known(); first += part) {
    slice_maxima(stream, slice(first), spec.rows, own);
    for (std::int64_t i = 0; i < own.count(); ++i) joined.f32()[i] = std::max(joined.f32()[i], own.f32()[i]);
  }
  if (!spec.scale_known()) scales_of_maxima(stream, spec, x.value_type(), joined, joined, out.descales);
  else copy(stream, spec.descale, out.descales);
  for (std::int64_t first = 0; first < n; first += part) {
    const StoredSlice s = slice(first);
    quantize_slice(stream, s, seen.of(spec), joined, out.codes.rows(s.first, s.stored.count()));
  }
  return out;
}

TEST(Slice, OfAnyCutHasTheCodesScalesAndHealthOfTheWholeMatrix) {
  Stream stream(Device::cpu);
  for (const Shape shape : {Shape{16, 16}, Shape{48, 80}, Shape{272, 144}, Shape{256, 384}, Shape{16, 2064}})
    for (const Storage storage : {Storage::f32, Storage::bf16, Storage::f16, Storage::e4m3_tensor})
      for (const bool odd : {false, true})
        for (const QuantizeCase& c : cases())
          for (const int parts : {3, 8}) {
            const Scope scope(stream);
            const std::string what = format("{} of {} {}{} in {} parts", c.name, name(storage), shape, odd ? " odd" : "", parts);
            const Stored x = values_of(stream, shape, storage, odd);
            QuantizeSpec spec = c.spec;
            if (c.known) spec.scale = testing::tensor_of(stream, {300}, {1}), spec.descale = testing::tensor_of(stream, {1 / 300.0f}, {1});
            Measured whole(stream), seen(stream);
            Sink sink = make_sink(stream, whole.of(spec), {.shape = shape, .dtype = x.value_type(), .plain = x.codes});
            quantize(stream, x, sink);
            const Sliced got = by_slices(stream, x, spec, parts, seen);
            ASSERT_EQ(testing::bytes(got.codes), testing::bytes(sink.codes.rows.codes)) << what;
            ASSERT_EQ(testing::bytes(got.descales), testing::bytes(sink.codes.rows.descales)) << what;
            EXPECT_EQ(*seen.amax.f32(), *whole.amax.f32()) << what;
            expect_same_health(seen.health, whole.health, what);
          }
}

TEST(Slice, OfAnotherShapeOrLayoutIsRefused) {
  Stream stream(Device::cpu);
  const Tensor values = stream.zeros({256}, DType::f32), codes = stream.zeros({256}, DType::e4m3), one = stream.zeros({1}, DType::f32);
  QuantizeSpec tensor;
  tensor.format = DType::e4m3;
  const auto quantized = [&](Shape matrix, std::int64_t first, const QuantizeSpec& spec) {
    quantize_slice(stream, {Stored::plain(values), matrix, first}, spec, one, codes);
  };
  EXPECT_NO_THROW(quantized({32, 16}, 256, tensor));
  EXPECT_THROW(quantized({32, 16}, 272, tensor), ContractError) << "beyond the matrix";
  EXPECT_THROW(quantized({40, 16}, 0, tensor), ContractError) << "sides";
  QuantizeSpec rows = tensor;
  rows.rows = rows.cols = {1, 0};
  EXPECT_THROW(quantized({32, 16}, 0, rows), ContractError) << "a scale per row";
  EXPECT_FALSE(can_quantize_slices(rows, {32, 16}));
  EXPECT_FALSE(can_quantize_slices(tensor, {40, 16}));
  EXPECT_TRUE(can_quantize_slices(tensor, {32, 16}));
}

}  // namespace
}  // namespace octet::ops
