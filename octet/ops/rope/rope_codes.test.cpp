#include "octet/ops/rope/rope_codes.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "octet/ops/attention/documents.testing.hpp"
#include "tests/testing/tensors.hpp"

namespace octet::ops {
namespace {

TEST(RopeCodes, AndMaximaAreThoseOfTheTurnedValues) {
  Stream stream(Device::cpu);
  const QkvShape heads{4, 2, 16, 33};
  const Shape shape{2 * heads.sequence, heads.columns()};
  const RopeTable table = rope_table(stream, heads.sequence, heads.head_dim, 10000);
  const std::vector<std::int32_t> starts = random_document_starts(shape[0], heads.sequence, 6);
  const Tensor places = stream.empty({shape[0]}, DType::i32);
  std::copy(starts.begin(), starts.end(), places.as<std::int32_t>());
  QuantizeSpec spec;
  spec.format = DType::e4m3, spec.scale = stream.empty({1}, DType::f32), spec.descale = stream.empty({1}, DType::f32);
  *spec.scale.f32() = 90, *spec.descale.f32() = 1 / 90.0f;
  const ColumnGroups groups{{{64, spec}, {32, spec}, {32, spec}}};
  const auto values = [&] { return testing::gaussian_tensor(stream, shape, 1, DType::bf16); };
  const Tensor first = values(), second = values(), third = values();
  const Tensor codes = stream.empty(shape, DType::e4m3), wanted = stream.empty(shape, DType::e4m3), maxima = stream.empty({3}, DType::f32),
               wanted_maxima = stream.empty({3}, DType::f32);
  const auto rope = [&](const Tensor& x) { return RopeForward{.qkv = x, .heads = heads, .table = table, .document_starts = places}; };
  rope_codes(stream, {.rope = rope(first), .groups = groups, .codes = codes});
  rope_maxima(stream, rope(second), groups, maxima);
  rope_forward(stream, rope(third));
  encode_columns(stream, third, groups, wanted), column_maxima(stream, third, groups, wanted_maxima);
  EXPECT_EQ(std::memcmp(codes.data, wanted.data, codes.bytes()), 0);
  EXPECT_EQ(std::memcmp(second.data, third.data, third.bytes()), 0);
  EXPECT_EQ(std::memcmp(maxima.data, wanted_maxima.data, maxima.bytes()), 0);
}

}  // namespace
}  // namespace octet::ops
