#include "octet/ops/running_mean/running_mean.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "octet/ops/running_mean/running_mean.kernels.hpp"
#include "tests/testing/tensors.hpp"

namespace octet::ops {
namespace {

using testing::gaussian_tensor;

constexpr std::int64_t counts[] = {0, 1, 7, 16, 33, 4097, 20011};
constexpr DType dtypes[] = {DType::f32, DType::bf16};

// Each of the k steps rounds a difference, a product and a sum of values of at most `largest`: the errors add up, weighted by at most 1.
TEST(RunningMean, IsTheMeanOfAllValuesWithEqualWeights) {
  constexpr int k = 9;
  for (const std::int64_t n : counts)
    for (const DType dtype : dtypes)
      for (auto* const kernel : testing::kernels(cpu::v3::running_mean, cpu::v4::running_mean)) {
        Stream s(Device::cpu);
        const Tensor mean = s.zeros({n}, DType::f32);
        std::vector<double> sums(std::size_t(n), 0.0), largest(std::size_t(n), 0.0);
        for (int step = 1; step <= k; ++step) {
          const Tensor x = gaussian_tensor(s, {n}, std::uint64_t(step), dtype);
          kernel(x, {}, 1.0f / float(step), mean);
          for (std::int64_t i = 0; i < n; ++i)
            sums[std::size_t(i)] += value_at(x, i),
                largest[std::size_t(i)] = std::fmax(largest[std::size_t(i)], std::fabs(double(value_at(x, i))));
        }
        for (std::int64_t i = 0; i < n; ++i)
          ASSERT_NEAR(value_at(mean, i), sums[std::size_t(i)] / k, k * 6 * 0x1p-24 * largest[std::size_t(i)]) << n << " " << i;
      }
}

TEST(RunningMean, BeginsWithTheFirstValueExactly) {
  Stream s(Device::cpu);
  const Tensor x = gaussian_tensor(s, {1030}, 3), mean = s.zeros({1030}, DType::f32);
  running_mean(s, x, 1, mean);
  EXPECT_EQ(testing::bytes(mean), testing::bytes(x));
}

TEST(RunningMean, OfCodesIsThatOfTheirValues) {
  for (const Storage storage : {Storage::f16, Storage::e4m3_tensor})
    for (const std::int64_t n : counts)
      for (auto* const kernel : testing::kernels(cpu::v3::running_mean, cpu::v4::running_mean)) {
        Stream s(Device::cpu);
        const Tensor codes = s.empty({n}, code_type(storage)), values = s.empty({n}, DType::f32),
                     factor = testing::tensor_of(s, {0x1p-9f}, {1}), mean = gaussian_tensor(s, {n}, 1), wanted = gaussian_tensor(s, {n}, 1);
        for (std::int64_t i = 0; i < n; ++i) {
          if (storage == Storage::f16) codes.as<Fp16>()[i] = to_fp16(float(i % 4001) - 2000.0f);
          else codes.u8()[i] = std::uint8_t(i % 127);
          values.f32()[i] = value_at(codes, i) * 0x1p-9f;
        }
        kernel(codes, factor, 0.25f, mean), kernel(values, {}, 0.25f, wanted);
        ASSERT_EQ(testing::bytes(mean), testing::bytes(wanted));
      }
}

TEST(RunningMean, RefusesOtherTypesAndShapes) {
  Stream s(Device::null);
  const Tensor mean = s.empty({4, 8}, DType::f32);
  EXPECT_THROW(running_mean(s, s.empty({8, 4}, DType::f32), 1, mean), ContractError);
  EXPECT_THROW(running_mean(s, s.empty({4, 8}, DType::i32), 1, mean), ContractError);
  EXPECT_THROW(running_mean(s, mean, 1, s.empty({4, 8}, DType::bf16)), ContractError);
}

TEST(RunningMean, DryRunNeedsTheSameMemory) {
  testing::expect_dry_run_agrees([](Stream& s) {
    const Tensor mean = s.zeros({5, 33}, DType::f32);
    running_mean(s, gaussian_tensor(s, {5, 33}, 1), 0.5f, mean);
  });
}

}  // namespace
}  // namespace octet::ops
