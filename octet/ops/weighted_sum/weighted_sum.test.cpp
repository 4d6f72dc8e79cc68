#include "octet/ops/weighted_sum/weighted_sum.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "octet/ops/adamw/adamw.hpp"
#include "octet/ops/weighted_sum/weighted_sum.kernels.hpp"
#include "tests/testing/tensors.hpp"

namespace octet::ops {
namespace {

using testing::gaussian_tensor;

Tensor step_of(Stream& s, const AdamWStep& values) {
  const Tensor step = s.zeros({adamw_step_floats}, DType::f32);
  upload(s, &values, step);
  return step;
}

TEST(WeightedSum, FollowsItsFormulaInEveryTypeAndLength) {
  for (const std::int64_t n : {0, 1, 7, 33, 4097})
    for (const DType in : {DType::f32, DType::bf16, DType::f16})
      for (const DType out : {DType::f32, DType::bf16})
        for (auto* const kernel : testing::kernels(cpu::v3::weighted_sum, cpu::v4::weighted_sum)) {
          Stream s(Device::cpu);
          const Tensor x = gaussian_tensor(s, {n}, 1, in), y = gaussian_tensor(s, {n}, 2, in), sum = s.empty({n}, out);
          const Tensor squares = s.zeros({1}, DType::f64), step = step_of(s, {.gradient_scale = 0.25f});
          *squares.as<double>() = 16;
          kernel({.a = 0.75f, .x = x, .b = -3, .y = y, .out = sum, .squares = squares, .step = step});
          for (std::int64_t i = 0; i < n; ++i) {
            const double a = 0.75 * value_at(x, i), b = -0.75 * value_at(y, i), largest = (std::fabs(a) + std::fabs(b)) / 4;
            ASSERT_NEAR(value_at(sum, i), (a + b) / 4, largest * (out == DType::bf16 ? 0x1p-8 : 0x1p-22)) << n << " " << i;
          }
        }
}

TEST(WeightedSum, OfASkippedStepIsXWhateverYIs) {
  Stream s(Device::cpu);
  const Tensor x = gaussian_tensor(s, {100}, 1), y = s.empty({100}, DType::f32), out = s.empty({100}, DType::f32);
  for (std::int64_t i = 0; i < 100; ++i) y.f32()[i] = NAN;
  weighted_sum(s, {.a = 0.5f, .x = x, .b = 1, .y = y, .out = out, .step = step_of(s, {.gradient_scale = 0, .skip = adamw_skip_nonfinite})});
  EXPECT_EQ(testing::bytes(out), testing::bytes(x));
}

TEST(WeightedSum, OverTheNormOfZerosIsZeroAndOfNaNIsNaN) {
  Stream s(Device::cpu);
  const Tensor x = s.zeros({5}, DType::f32), out = gaussian_tensor(s, {5}, 1), squares = s.zeros({1}, DType::f64);
  weighted_sum(s, {.x = x, .out = out, .squares = squares});
  for (int i = 0; i < 5; ++i) EXPECT_EQ(out.f32()[i], 0);
  *squares.as<double>() = NAN;
  weighted_sum(s, {.x = x, .out = out, .squares = squares});
  EXPECT_TRUE(std::isnan(out.f32()[0]));
}

TEST(WeightedSum, RefusesOtherTypesAndShapes) {
  Stream s(Device::null);
  const Tensor x = s.empty({4, 8}, DType::f32);
  EXPECT_THROW(weighted_sum(s, {.x = x, .out = s.empty({8, 4}, DType::f32)}), ContractError);
  EXPECT_THROW(weighted_sum(s, {.x = x, .y = s.empty({4, 8}, DType::bf16), .out = x}), ContractError);
  EXPECT_THROW(weighted_sum(s, {.x = x, .out = x, .squares = s.empty({1}, DType::f32)}), ContractError);
  EXPECT_THROW(weighted_sum(s, {.x = x, .out = x, .step = s.empty({1}, DType::f32)}), ContractError);
}

}  // namespace
}  // namespace octet::ops
