#include "octet/tensor/storage.hpp"

#include <gtest/gtest.h>

#include "octet/base/error.hpp"

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

}  // namespace
}  // namespace octet
