#include "octet/tensor/storage.hpp"

#include <gtest/gtest.h>

#include "octet/base/error.hpp"
#include "octet/tensor/stored_memory.hpp"

namespace octet {
namespace {

TEST(Storage, ScalesHaveTheShapeOfTheirBlocks) {
  EXPECT_EQ(scales_shape(Storage::f16, 1000), Shape({2}));
  EXPECT_EQ(scales_shape(Storage::e4m3, 128), Shape({1}));
  EXPECT_EQ(scales_shape(Storage::e4m3_root, 129), Shape({2}));
  EXPECT_EQ(scales_shape(Storage::e4m3_expanded, 257), Shape({3, 3}));
  EXPECT_EQ(scales_shape(Storage::bf16, 128).count(), 0);
}

TEST(Storage, PlainValuesAreF32OrBf16) {
  float x[2] = {};
  EXPECT_EQ(Stored::plain({x, {2}, DType::f32}).storage, Storage::f32);
  EXPECT_EQ(Stored::plain({x, {2}, DType::bf16}).storage, Storage::bf16);
  EXPECT_THROW(Stored::plain({x, {2}, DType::e4m3}), ContractError);
}

TEST(Storage, APartHasTheScalesOfItsValues) {
  std::uint8_t codes[300] = {}, scales[3] = {};
  float table[2] = {};
  const Stored blocks{.codes = {codes, {2, 150}, DType::e4m3}, .scales = {scales, {3}, DType::e8m0}, .storage = Storage::e4m3};
  EXPECT_EQ(blocks.part(0, 300).shape(), Shape({2, 150}));
  const Stored part = blocks.part(128, 130);
  EXPECT_EQ(part.codes.u8(), codes + 128);
  EXPECT_EQ(part.shape(), Shape({130}));
  EXPECT_EQ(part.scales.u8(), scales + 1);
  EXPECT_EQ(part.scales.shape, Shape({2}));
  EXPECT_THROW(blocks.part(100, 128), ContractError);
  EXPECT_THROW(blocks.part(256, 128), ContractError);

  const Stored tensor{.codes = {codes, {300}, DType::e4m3}, .scales = {table, {2}, DType::f32}, .storage = Storage::e4m3_tensor};
  EXPECT_EQ(tensor.part(3, 5).codes.u8(), codes + 3);
  EXPECT_EQ(tensor.part(3, 5).scales.f32(), table);
}

TEST(Storage, ReshapedValuesKeepTheirScales) {
  std::uint8_t codes[256] = {}, scales[2] = {};
  const Stored x{.codes = {codes, {2, 128}, DType::e4m3}, .scales = {scales, {2}, DType::e8m0}, .storage = Storage::e4m3};
  EXPECT_EQ(flat(x).shape(), Shape({256}));
  EXPECT_EQ(reshaped(flat(x), {128, 2}).scales.u8(), scales);
}

}  // namespace
}  // namespace octet
