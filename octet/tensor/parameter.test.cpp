#include "octet/tensor/parameter.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/testing/tensors.hpp"

namespace octet {
namespace {

/// The nearest BF16 number in double, ties to even: 8 bits of significand. For values whose result is normal.
double nearest_bf16(double x) {
  int exponent = 0;
  (void)std::frexp(x, &exponent);
  const double unit = std::ldexp(1.0, exponent - 8);
  return std::nearbyint(x / unit) * unit;
}

TEST(Parameter, FloatsGoInAndOutUnchanged) {
  Stream stream(Device::cpu);
  const std::vector<float> values = testing::gaussian(1000, 3);
  const Tensor t = stream.empty({10, 100}, DType::f32);
  std::vector<float> back(1000);
  set_values(stream, t, values.data());
  get_values(stream, t, back.data());
  EXPECT_EQ(back, values);
}

TEST(Parameter, Bf16TakesTheNearestValueTiesToEven) {
  Stream stream(Device::cpu);
  std::vector<float> values = testing::gaussian(4096, 3);
  for (int i = 0; i < 64; ++i) values[std::size_t(i)] = 1 + (float(i) + 0.5f) * 0x1p-7f;  // half way between neighbours
  const Tensor t = stream.empty({64, 64}, DType::bf16);
  std::vector<float> back(4096);
  set_values(stream, t, values.data());
  get_values(stream, t, back.data());
  for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(double(back[i]), nearest_bf16(values[i])) << values[i];
}

TEST(Parameter, OtherTypesAreRefused) {
  Stream stream(Device::cpu);
  const float value = 1;
  EXPECT_THROW(set_values(stream, stream.empty({1}, DType::e4m3), &value), ContractError);
}

TEST(Parameter, OnlyMatricesAreNarrowAndOnlyVectorsDoNotDecay) {
  Parameter matrix("a.weight", {4, 4}), bias("a.bias", {4}, {Init::Kind::zeros}, ParameterRole::vector),
      positions("p.weight", {4, 4}, {}, ParameterRole::position);
  matrix.gradient.add_use(GradientUse::product), bias.gradient.add_use(GradientUse::sum), positions.gradient.add_use(GradientUse::sum);
  EXPECT_EQ(matrix.value_storage(Storage::bf16), Storage::bf16);
  EXPECT_EQ(matrix.gradient_storage(Storage::e4m3), Storage::e4m3);
  for (const Parameter* p : {&bias, &positions}) {
    EXPECT_EQ(p->value_storage(Storage::bf16), Storage::f32) << p->path;
    EXPECT_EQ(p->gradient_storage(Storage::e4m3), Storage::f32) << p->path;
  }
  EXPECT_TRUE(matrix.decays() && positions.decays() && !bias.decays());
  EXPECT_FALSE(bool(matrix.value)) << "storage is bound later";
  EXPECT_EQ(matrix.version, 1u);
}

}  // namespace
}  // namespace octet
