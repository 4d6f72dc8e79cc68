#include "octet/ops/balance/balance.hpp"

#include <gtest/gtest.h>

#include "tests/testing/tensors.hpp"

namespace octet::ops {
namespace {

using testing::tensor_of;

std::vector<float> values(const Tensor& t) { return {t.f32(), t.f32() + t.count()}; }

TEST(Balance, TheBiasOfAnExpertBelowTheMeanRisesAndAboveItFalls) {
  Stream s(Device::cpu);
  const Tensor counts = tensor_of(s, {4, 0, 2, 2, 1, 1, 1, 1}, {2, 4}), bias = tensor_of(s, {0, 0, 0, 0, 1, 1, 1, 1}, {2, 4});
  balance_bias(s, {.counts = counts, .skip = s.zeros({1}, DType::f32), .bias = bias, .rate = 0.5f});
  EXPECT_EQ(values(bias), (std::vector<float>{-0.5f, 0.5f, 0, 0, 1, 1, 1, 1}));
}

TEST(Balance, TheBiasOfASkippedStepIsAsBefore) {
  Stream s(Device::cpu);
  const Tensor counts = tensor_of(s, {4, 0}, {1, 2}), bias = tensor_of(s, {1, 2}, {1, 2});
  balance_bias(s, {.counts = counts, .skip = tensor_of(s, {1}, {1}), .bias = bias, .rate = 0.5f});
  EXPECT_EQ(values(bias), (std::vector<float>{1, 2}));
}

TEST(Balance, TheGradientIsTheCountTimesFactorAndScale) {
  Stream s(Device::cpu);
  const Tensor counts = tensor_of(s, {4, 0, 2}, {1, 3}), d = s.empty({1, 3}, DType::f32);
  balance_gradient(s, {.counts = counts, .scale = {}, .dscores = d, .factor = 0.5f});
  EXPECT_EQ(values(d), (std::vector<float>{2, 0, 1}));
  balance_gradient(s, {.counts = counts, .scale = tensor_of(s, {8}, {1}), .dscores = d, .factor = 0.5f});
  EXPECT_EQ(values(d), (std::vector<float>{16, 0, 8}));
}

TEST(Balance, RefusesTensorsThatDoNotFit) {
  Stream s(Device::null);
  const Tensor counts = s.empty({2, 4}, DType::f32), scalar = s.empty({1}, DType::f32);
  EXPECT_THROW(balance_bias(s, {.counts = counts, .skip = scalar, .bias = scalar}), ContractError);
  EXPECT_THROW(balance_bias(s, {.counts = counts, .skip = counts, .bias = counts}), ContractError);
  EXPECT_THROW(balance_gradient(s, {.counts = counts, .scale = {}, .dscores = scalar}), ContractError);
}

}  // namespace
}  // namespace octet::ops
