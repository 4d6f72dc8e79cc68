#include "octet/ops/most_likely/most_likely.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "octet/ops/most_likely/most_likely.kernels.hpp"
#include "tests/testing/sinks.hpp"

namespace octet::ops {
namespace {

// The first of the largest, and whether all are finite, one after the other in double.
std::int32_t wanted(const Tensor& logits, std::int64_t row, std::int64_t vocabulary) {
  std::int32_t best = 0;
  for (std::int64_t c = 0; c < vocabulary; ++c) {
    const double x = value_at(logits, row * logits.shape[1] + c);
    if (!std::isfinite(x)) return -1;
    if (x > value_at(logits, row * logits.shape[1] + best)) best = std::int32_t(c);
  }
  return best;
}

// Rows have many equal values where they are rounded to few. Columns behind the vocabulary are larger than all others.
TEST(MostLikely, IsTheFirstOfTheLargestWithinTheVocabulary) {
  for (auto* const kernel : testing::kernels(cpu::v3::most_likely, cpu::v4::most_likely))
    for (const DType dtype : testing::activation_dtypes)
      for (const auto& [vocabulary, columns] : {std::pair{1, 1}, {1, 8}, {255, 256}, {257, 264}, {5000, 5120}}) {
        Stream s(Device::cpu);
        const Tensor logits = testing::gaussian_tensor(s, {5, columns}, 3, dtype), ids = s.empty({5}, DType::i32);
        for (std::int64_t i = 0; i < logits.count(); ++i)
          testing::put(logits, i, i % columns < vocabulary ? std::round(4 * value_at(logits, i)) / 4 : 100.0f);
        kernel({.logits = logits, .vocabulary = vocabulary, .ids = ids});
        for (std::int64_t t = 0; t < 5; ++t)
          EXPECT_EQ(ids.as<std::int32_t>()[t], wanted(logits, t, vocabulary)) << format("{} {}", dtype, columns);
      }
}

TEST(MostLikely, IsNoneWhereALogitIsNotFinite) {
  for (auto* const kernel : testing::kernels(cpu::v3::most_likely, cpu::v4::most_likely))
    for (const DType dtype : testing::activation_dtypes)
      for (const float odd : {NAN, -NAN, INFINITY, -INFINITY}) {
        Stream s(Device::cpu);
        const Tensor logits = testing::gaussian_tensor(s, {3, 600}, 1, dtype), ids = s.empty({3}, DType::i32);
        testing::put(logits, 600 + 290, odd), testing::put(logits, 2 * 600 + 590, odd);
        kernel({.logits = logits, .vocabulary = 580, .ids = ids});
        EXPECT_GE(ids.as<std::int32_t>()[0], 0);
        EXPECT_EQ(ids.as<std::int32_t>()[1], -1) << format("{} {}", dtype, odd);
        EXPECT_GE(ids.as<std::int32_t>()[2], 0) << "behind the vocabulary";
      }
}

TEST(MostLikely, ZerosOfBothSignsAreEqual) {
  Stream s(Device::cpu);
  const Tensor logits = s.zeros({1, 3}, DType::f32), ids = s.empty({1}, DType::i32);
  logits.f32()[0] = -1, logits.f32()[1] = -0.0f;
  most_likely(s, {.logits = logits, .vocabulary = 3, .ids = ids});
  EXPECT_EQ(ids.as<std::int32_t>()[0], 1);
}

TEST(MostLikely, RefusesOtherShapes) {
  Stream s(Device::null);
  const Tensor logits = s.empty({2, 8}, DType::bf16), ids = s.empty({2}, DType::i32);
  EXPECT_THROW(most_likely(s, {.logits = logits, .vocabulary = 9, .ids = ids}), ContractError);
  EXPECT_THROW(most_likely(s, {.logits = logits, .vocabulary = 0, .ids = ids}), ContractError);
  EXPECT_THROW(most_likely(s, {.logits = logits, .vocabulary = 8, .ids = s.empty({3}, DType::i32)}), ContractError);
  EXPECT_THROW(most_likely(s, {.logits = logits, .vocabulary = 8, .ids = s.empty({2}, DType::f32)}), ContractError);
}

}  // namespace
}  // namespace octet::ops
