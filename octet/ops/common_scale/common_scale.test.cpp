#include "octet/ops/common_scale/common_scale.hpp"

#include <gtest/gtest.h>

#include "octet/ops/common_scale/common_scale.kernels.hpp"
#include "tests/testing/tensors.hpp"

namespace octet::ops {
namespace {

using testing::tensor_of;

TEST(CommonScale, MaximaAreThoseOfFiniteValues) {
  Stream s(Device::cpu);
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const std::int64_t n : {0, 1, 7, 4097, 20000}) {
      const Tensor x = testing::gaussian_tensor(s, {n}, 5, dtype), bad = tensor_of(s, {NAN, -2, INFINITY}, {3}, dtype);
      float most = 0;
      for (std::int64_t i = 0; i < n; ++i) most = std::max(most, std::fabs(value_at(x, i)));
      const Tensor amax = testing::gaussian_tensor(s, {2}, 1);
      tensor_maxima(s, std::vector{x, bad}, amax);
      EXPECT_EQ(amax.f32()[0], most) << n;
      EXPECT_EQ(amax.f32()[1], 2);
    }
}

TEST(CommonScale, TheDescaleIsThePowerOfTwoOverMu) {
  Stream s(Device::cpu);
  const float most = E4M3::max;
  const Tensor amax = tensor_of(s, {most, std::nextafter(most, 1000.0f), 1, 0}, {4}), mu = tensor_of(s, {1, 1, 0.75f, 0.5f}, {4});
  const Tensor scales = s.empty({4, 2}, DType::f32);
  common_scales(s, amax, mu, scales);
  EXPECT_EQ(scales.f32()[0], 1);
  EXPECT_EQ(scales.f32()[2], 2);
  EXPECT_EQ(scales.f32()[4], 0x1p-8f / 0.75f);
  EXPECT_EQ(scales.f32()[6], 2);
  EXPECT_EQ(scales.f32()[3], amax.f32()[1]);
}

TEST(CommonScale, MuHalvesAboveTheThresholdAndDoublesIn1000Steps) {
  Stream s(Device::cpu);
  const Tensor limits = s.empty({3}, DType::i64);
  std::fill_n(limits.as<std::int64_t>(), 3, 10);
  for (const MuGrowth growth : {MuGrowth::never, MuGrowth::at_zero, MuGrowth::below_threshold}) {
    const Tensor mu = tensor_of(s, {0.25f, 0.25f, 0.25f}, {3}), counts = s.zeros({3, 2}, DType::i64);
    counts.as<std::int64_t>()[0] = 11, counts.as<std::int64_t>()[2] = 10;
    advance_mu(s, {.mu = mu, .counts = counts, .limits = limits, .growth = growth});
    EXPECT_EQ(mu.f32()[0], growth == MuGrowth::never ? 0.25f : 0.125f);
    for (int i = 1; i < 1000; ++i) advance_mu(s, {.mu = mu, .counts = counts, .limits = limits, .growth = growth});
    const double doubled = 0.5, bound = 0.5 * 1000 * 0x1p-23;  // two roundings a step, of the factor and the product
    EXPECT_NEAR(mu.f32()[1], growth == MuGrowth::below_threshold ? doubled : 0.25, bound);
    EXPECT_NEAR(mu.f32()[2], growth == MuGrowth::never ? 0.25 : doubled, bound);
    EXPECT_EQ(mu.f32()[0], growth == MuGrowth::never ? 0.25f : 0x1p-24f) << "not less";
    for (int i = 0; i < 1100; ++i) advance_mu(s, {.mu = mu, .counts = counts, .limits = limits, .growth = growth});
    EXPECT_EQ(mu.f32()[2], growth == MuGrowth::never ? 0.25f : 1.0f) << "not more";
  }
}

TEST(CommonScale, RefusesTensorsThatDoNotFit) {
  Stream s(Device::null);
  const Tensor one = s.empty({1}, DType::f32), two = s.empty({2}, DType::f32), half = s.empty({1}, DType::f16);
  EXPECT_THROW(tensor_maxima(s, std::vector{one}, two), ContractError);
  EXPECT_THROW(tensor_maxima(s, std::vector{half}, one), ContractError);
  EXPECT_THROW(common_scales(s, one, two, s.empty({1, 2}, DType::f32)), ContractError);
  EXPECT_THROW(advance_mu(s, {.mu = one, .counts = two, .limits = one}), ContractError);
}

}  // namespace
}  // namespace octet::ops
