#include "octet/io/tensor_view.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "octet/base/error.hpp"
#include "tests/testing/scratch.hpp"

namespace octet::io {
namespace {
using testing::error_of, testing::has, testing::Scratch;

std::vector<float> there_and_back(std::span<const float> values, StoredDType dtype) {
  const std::vector<std::byte> bytes = from_f32(values, dtype);
  const std::int64_t shape[] = {std::int64_t(values.size())};
  return to_f32({"x", dtype, shape, bytes});
}

TEST(TensorView, ValuesThatATypeHoldsComeBackExactly) {
  const float values[] = {0.0f, -0.0f, 1.0f, -2.5f, 0x1p-14f, 0x1.8p9f, INFINITY, -INFINITY};
  for (const StoredDType type : {StoredDType::f32, StoredDType::bf16, StoredDType::f16}) {
    const std::vector<float> back = there_and_back(values, type);
    for (std::size_t i = 0; i < std::size(values); ++i) {
      EXPECT_EQ(std::bit_cast<std::uint32_t>(back[i]), std::bit_cast<std::uint32_t>(values[i])) << name(type) << " " << values[i];
    }
    EXPECT_TRUE(std::isnan(there_and_back(std::vector{NAN}, type)[0]));
  }
}

TEST(TensorView, Every16BitPatternIsReadAndWrittenUnchangedUnlessNan) {
  for (const StoredDType type : {StoredDType::bf16, StoredDType::f16}) {
    std::vector<std::uint16_t> bits(65536);
    for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = std::uint16_t(i);
    const std::int64_t shape[] = {256, 256};
    const std::vector<float> values = to_f32({"x", type, shape, std::as_bytes(std::span(bits))});
    std::vector<std::uint16_t> back(bits.size());
    std::memcpy(back.data(), from_f32(values, type).data(), 2 * bits.size());
    for (std::size_t i = 0; i < bits.size(); ++i) {
      if (!std::isnan(values[i])) {
        ASSERT_EQ(back[i], bits[i]) << name(type);
      }
    }
  }
}

TEST(TensorView, RoundingIsToNearestEvenAndBeyondF16IsInfinity) {
  EXPECT_EQ(there_and_back(std::vector{1.0f + 0x1p-8f, 1.0f + 0x3p-8f}, StoredDType::bf16), (std::vector{1.0f, 1.0f + 0x1p-6f}));
  EXPECT_EQ(there_and_back(std::vector{1.0f + 0x1p-11f, 65519.0f, 65520.0f}, StoredDType::f16), (std::vector{1.0f, 65504.0f, INFINITY}));
}

TEST(TensorView, ElementsAreReadAtAnyAlignment) {
  std::vector<std::byte> bytes(1);
  for (const std::byte b : from_f32(std::vector{1.5f, -2.0f}, StoredDType::f32)) bytes.push_back(b);
  const std::int64_t shape[] = {2};
  EXPECT_EQ(to_f32({"x", StoredDType::f32, shape, std::span(bytes).subspan(1)}), (std::vector{1.5f, -2.0f}));
}

TEST(TensorView, ScalarsAndEmptyTensorsHaveOneAndNoValue) {
  const std::vector<std::byte> bytes = from_f32(std::vector{7.0f}, StoredDType::bf16);
  EXPECT_EQ(to_f32({"x", StoredDType::bf16, {}, bytes}), std::vector{7.0f});
  const std::int64_t shape[] = {3, 0};
  EXPECT_TRUE(to_f32({"x", StoredDType::f32, shape, {}}).empty());
}

TEST(TensorView, TypesThatAreNoPlainNumbersAreRefusedByName) {
  const std::byte byte{};
  for (const StoredDType type : {StoredDType::e4m3, StoredDType::i64, StoredDType::boolean}) {
    EXPECT_EQ(
        error_of<DataError>([&] {
          to_f32({"w\n", type, {}, {&byte, 1}});
        }),
        "tensor \"w\\x0a\" must be F32, BF16 or F16 to be read as numbers, it is " + std::string(name(type)) + "; convert the file first");
  }
  EXPECT_TRUE(has(error_of<ContractError>([] { from_f32({}, StoredDType::e4m3); }), "not F8_E4M3"));
  std::vector<float> two(2);
  EXPECT_TRUE(has(error_of<ContractError>([&] { to_f32({"w", StoredDType::f32, {}, {}}, two); }), "out must have 1 elements, got 2"));
}

}  // namespace
}  // namespace octet::io
