#include "octet/train/study/twin.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

namespace octet::train {
namespace {

/// A matrix and a norm's weights, beside zeros.
struct Three {
  Parameter matrix{"layers.0.matrix", {37, 11}}, norm{"norm", {5}, {Init::Kind::ones}, ParameterRole::vector},
      bias{"bias", {3}, {Init::Kind::zeros}, ParameterRole::vector};
  void visit(nn::Visitor& v) { v.parameter(matrix), v.parameter(norm), v.parameter(bias); }
};

std::vector<float> weights(Storage values, std::uint64_t seed, int twin) {
  Stream stream(Device::cpu);
  Three model;
  nn::Parameters parameters(stream, model, false, {values, Storage::f32});
  parameters.initialize(stream, seed);
  if (twin != 0) nudge(stream, parameters, seed, twin);
  return nn::flat_values(stream, parameters.values());
}

/// Steps in the last place of a normal value whose last place is `unit` of a float's: 1 for f32, 2^16 for bf16.
std::int64_t places_between(float a, float b, std::int64_t unit) {
  return (std::int64_t(std::bit_cast<std::uint32_t>(b)) - std::int64_t(std::bit_cast<std::uint32_t>(a))) / unit;
}

TEST(Twin, ATwinsFirstWeightsDifferInTheirLastBitAndZerosStay) {
  struct Unit {
    Storage storage;
    std::int64_t bits;
  };
  for (const auto [storage, unit] : {Unit{Storage::f32, 1}, Unit{Storage::bf16, 1 << 16}, Unit{Storage::bf16_nearest, 1 << 16},
                                     Unit{Storage::f16, 1 << 13}, Unit{Storage::e4m3_tensor, 1 << 20}}) {
    const std::vector<float> run = weights(storage, 3, 0), twin = weights(storage, 3, 1);
    const std::size_t matrix = 37 * 11, norm = 5;
    std::int64_t away = 0;
    for (std::size_t i = 0; i < matrix; ++i) {
      const std::int64_t places = places_between(run[i], twin[i], unit);
      ASSERT_EQ(std::abs(places), 1) << name(storage) << " " << i;
      away += places > 0;
    }
    EXPECT_NEAR(double(away), matrix / 2.0, 5 * std::sqrt(matrix) / 2) << "each way with probability 1/2";
    for (std::size_t i = matrix; i < matrix + norm; ++i)
      EXPECT_EQ(std::abs(places_between(run[i], twin[i], 1)), 1) << "norms are f32 always";
    for (std::size_t i = matrix + norm; i < run.size(); ++i) EXPECT_EQ(twin[i], 0.0f);
  }
}

TEST(Twin, TwinsFollowFromSeedAndNumberAlone) {
  const std::vector<float> one = weights(Storage::f32, 3, 1);
  EXPECT_EQ(one, weights(Storage::f32, 3, 1));
  EXPECT_NE(one, weights(Storage::f32, 3, 2));
  EXPECT_THROW(weights(Storage::f32, 3, -1), ContractError);
}

}  // namespace
}  // namespace octet::train
