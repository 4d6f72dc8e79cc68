#include "octet/nn/parameters.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

namespace octet::nn {
namespace {

/// A matrix and a norm's weights, beside zeros.
struct Three {
  Parameter matrix{"layers.0.matrix", {37, 11}}, norm{"norm", {5}, {Init::Kind::ones}, ParameterRole::vector},
      bias{"bias", {3}, {Init::Kind::zeros}, ParameterRole::vector};
  Three() {
    matrix.gradient.add_use(GradientUse::product);
    for (Parameter* p : {&norm, &bias}) p->gradient.add_use(GradientUse::sum);
  }
  void visit(Visitor& v) { v.parameter(matrix), v.parameter(norm), v.parameter(bias); }
};

std::vector<float> weights(DType values, std::uint64_t seed, int twin) {
  Stream stream(Device::cpu);
  Three model;
  Parameters parameters(stream, model, false, {values, Storage::f32});
  parameters.initialize(stream, seed);
  if (twin != 0) parameters.nudge(stream, seed, twin);
  return flat_values(stream, parameters.values());
}

/// Steps in the last place of a value stored in `unit` bits below a float's last: 1 for f32, 2^16 for bf16.
std::int64_t places_between(float a, float b, std::int64_t unit) {
  return (std::int64_t(std::bit_cast<std::uint32_t>(b)) - std::int64_t(std::bit_cast<std::uint32_t>(a))) / unit;
}

TEST(Parameters, ATwinsFirstWeightsDifferInTheirLastBitAndZerosStay) {
  for (const DType type : {DType::f32, DType::bf16}) {
    const std::vector<float> run = weights(type, 3, 0), twin = weights(type, 3, 1);
    const std::size_t matrix = 37 * 11, norm = 5;
    std::int64_t away = 0;
    for (std::size_t i = 0; i < matrix; ++i) {
      const std::int64_t places = places_between(run[i], twin[i], type == DType::bf16 ? 1 << 16 : 1);
      ASSERT_EQ(std::abs(places), 1) << i;
      away += places > 0;
    }
    EXPECT_NEAR(double(away), matrix / 2.0, 5 * std::sqrt(matrix) / 2) << "each way with probability 1/2";
    for (std::size_t i = matrix; i < matrix + norm; ++i)
      EXPECT_EQ(std::abs(places_between(run[i], twin[i], 1)), 1) << "norms are f32 always";
    for (std::size_t i = matrix + norm; i < run.size(); ++i) EXPECT_EQ(twin[i], 0.0f);
  }
}

TEST(Parameters, GradientsLieInTheOrderOfBackwardOneTypePerBuffer) {
  Stream stream(Device::cpu);
  Three model;
  Parameters parameters(stream, model, true, {DType::f32, Storage::bf16});
  EXPECT_EQ(model.matrix.gradient.stored().codes.dtype, DType::bf16);
  EXPECT_EQ(model.norm.gradient.stored().codes.dtype, DType::f32);
  EXPECT_EQ(model.bias.gradient.stored().codes.as<std::byte>() + Arena::alignment, model.norm.gradient.stored().codes.as<std::byte>());
  EXPECT_FALSE(model.matrix.gradient.complete()) << "stale: its GEMM stores first on a CPU";
  EXPECT_TRUE(model.norm.gradient.complete());
  model.norm.gradient.stored().codes.f32()[2] = 1;
  parameters.clear_gradients(stream);
  EXPECT_EQ(model.norm.gradient.stored().codes.f32()[2], 0);
}

TEST(Parameters, TwinsFollowFromSeedAndNumberAlone) {
  const std::vector<float> one = weights(DType::f32, 3, 1);
  EXPECT_EQ(one, weights(DType::f32, 3, 1));
  EXPECT_NE(one, weights(DType::f32, 3, 2));
  EXPECT_THROW(weights(DType::f32, 3, -1), ContractError);
}

}  // namespace
}  // namespace octet::nn
