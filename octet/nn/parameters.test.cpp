#include "octet/nn/parameters.hpp"

#include <gtest/gtest.h>

#include <algorithm>
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

std::vector<float> weights(Storage values, std::uint64_t seed) {
  Stream stream(Device::cpu);
  Three model;
  Parameters parameters(stream, model, false, {values, Storage::f32});
  parameters.initialize(stream, seed);
  return flat_values(stream, parameters.values());
}

TEST(Parameters, GradientsLieInTheOrderOfBackwardOneTypePerBuffer) {
  Stream stream(Device::cpu);
  Three model;
  Parameters parameters(stream, model, true, {Storage::f32, Storage::bf16});
  EXPECT_EQ(model.matrix.gradient.stored().codes.dtype, DType::bf16);
  EXPECT_EQ(model.norm.gradient.stored().codes.dtype, DType::f32);
  EXPECT_EQ(model.bias.gradient.stored().codes.f32() + 256, model.norm.gradient.stored().codes.f32()) << "each begins at 256 elements";
  EXPECT_FALSE(model.matrix.gradient.complete()) << "stale: its GEMM stores first on a CPU";
  EXPECT_TRUE(model.norm.gradient.complete());
  model.norm.gradient.stored().codes.f32()[2] = 1;
  parameters.clear_gradients(stream);
  EXPECT_EQ(model.norm.gradient.stored().codes.f32()[2], 0);
}

TEST(Parameters, MastersWithAScaleStartWithTheValuesOfF32RoundedToTheirCodes) {
  const std::vector<float> exact = weights(Storage::f32, 3), f16 = weights(Storage::f16, 3), e4m3 = weights(Storage::e4m3_tensor, 3);
  const std::size_t matrix = 37 * 11;
  const float most =
      std::fabs(*std::max_element(exact.begin(), exact.begin() + matrix, [](float a, float b) { return std::fabs(a) < std::fabs(b); }));
  for (std::size_t i = 0; i < matrix; ++i) {
    const double x = std::fabs(exact[i]);
    // Half of a last place of 11 or 4 bits, or of the least code; the scale puts the largest value above half of the range.
    ASSERT_LE(std::fabs(double(f16[i]) - exact[i]), std::max(x * 0x1p-11, most * 0x1p-24 / (double(Fp16::max) / 2) / 2)) << i;
    ASSERT_LE(std::fabs(double(e4m3[i]) - exact[i]), std::max(x * 0x1p-4, most * double(E4M3::min_subnormal) / (E4M3::max / 2) / 2)) << i;
  }
}

TEST(Parameters, ValuesOfEveryMasterGoInAndOut) {
  for (const Storage storage : {Storage::f32, Storage::bf16, Storage::f16, Storage::bf16_nearest, Storage::e4m3_tensor}) {
    Stream stream(Device::cpu);
    Three model;
    const Parameters parameters(stream, model, false, {storage, Storage::f32});
    std::vector<float> values(37 * 11), back(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::ldexp(i % 3 == 1 ? -1.0f : 1.0f, -20 - int(i % 7));
    set_values(stream, model.matrix.value, values.data());
    get_values(stream, model.matrix.value, back.data());
    EXPECT_EQ(back, values) << name(storage) << ": powers of two near each other";
    if (model.matrix.value.scales) {
      EXPECT_EQ(model.matrix.value.scales.f32()[1], 0x1p-20f) << "the maximum";
    }
    std::fill(values.begin(), values.end(), 0.0f);
    set_values(stream, model.matrix.value, values.data());
    get_values(stream, model.matrix.value, back.data());
    EXPECT_EQ(back, values) << name(storage);
  }
}

}  // namespace
}  // namespace octet::nn
