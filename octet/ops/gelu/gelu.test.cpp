#include <gtest/gtest.h>

#include "octet/ops/gelu/gelu.kernels.hpp"
#include "octet/ops/gelu/gelu.math.hpp"
#include "tests/testing/dual.hpp"
#include "tests/testing/saved.hpp"

namespace octet::ops {
namespace {

using testing::Bounded, testing::BoundedLane, testing::Dual, testing::NumberLane;
using testing::bounded, testing::gaussian_tensor, testing::plain_sink, testing::values;

constexpr float infinity = __builtin_inff();

TEST(Gelu, ForwardIsWithinItsErrorBoundOnEveryInstructionSet) {
  for (const auto [rows, cols] : testing::row_shapes)
    for (const DType dtype : testing::activation_dtypes)
      for (auto* const kernel : testing::kernels(cpu::v3::gelu_forward, cpu::v4::gelu_forward)) {
        Stream s(Device::cpu);
        const Tensor x = gaussian_tensor(s, {rows, cols}, 1, dtype, 4);
        Sink y = plain_sink(s, x.shape, dtype);
        kernel(x, y);
        const auto in = bounded(values(x));
        std::vector<Bounded> out(in.size());
        gelu_row(BoundedLane{}, x.count(), in.data(), out.data());
        testing::expect_within(y.plain, 0, out, "y");
      }
}

TEST(Gelu, BackwardIsWithinItsErrorBoundOnEveryInstructionSet) {
  for (const auto [rows, cols] : testing::row_shapes)
    for (const DType dtype : testing::activation_dtypes)
      for (auto* const kernel : testing::kernels(cpu::v3::gelu_backward, cpu::v4::gelu_backward)) {
        Stream s(Device::cpu);
        const Tensor x = gaussian_tensor(s, {rows, cols}, 1, dtype, 4), dy = gaussian_tensor(s, {rows, cols}, 2, dtype);
        Sink dx = plain_sink(s, x.shape, dtype);
        kernel(dy, x, dx);
        const auto in = bounded(values(x)), d = bounded(values(dy));
        std::vector<Bounded> out(in.size());
        gelu_backward_row(BoundedLane{}, x.count(), d.data(), in.data(), out.data());
        testing::expect_within(dx.plain, 0, out, "dx");
      }
}

TEST(Gelu, BackwardIsTheDerivativeOfForward) {
  const NumberLane<Dual> lane;
  for (const double at : {-40.0, -15.0, -3.0, -0.75, 0.0, 0.5, 2.0, 9.0, 1e6}) {
    Dual x = at, y = 0, dx = 0;
    const Dual dy = 0.5;
    gelu_backward_row(lane, 1, &dy, &x, &dx);
    x.slope = 1;
    gelu_row(lane, 1, &x, &y);
    // Some thirty operations; the slope of u grows with x^2, what multiplies it falls faster.
    EXPECT_NEAR(dx.value, 0.5 * y.slope, testing::dot_bound(32, 0x1p-53, 4)) << at;
  }
}

float gelu_of(float x) {
  Stream s(Device::cpu);
  Sink y = plain_sink(s, {1, 1}, DType::f32);
  gelu_forward(s, testing::tensor_of(s, {x}, {1, 1}), y);
  return *y.plain.f32();
}

TEST(Gelu, EqualsItsDefinitionByTheHyperbolicTangent) {
  for (const float x : {-6.0f, -2.5f, -1.0f, -0.1f, 0.0f, 1e-6f, 0.3f, 1.0f, 4.0f, 11.0f}) {
    const long double v = x, u = std::sqrt(2 / 3.14159265358979323846L) * (v + 0.044715L * v * v * v), exact = v / 2 * (1 + std::tanh(u));
    EXPECT_NEAR(gelu_of(x), double(exact), testing::dot_bound(16, testing::unit_f32, (1 + double(std::fabs(u))) * double(std::fabs(exact))))
        << x;
  }
}

TEST(Gelu, IsXOrZeroFarFromZeroAndLetsThroughWhatIsNotFinite) {
  for (const float x : {17.0f, 1e10f, 3e38f}) {
    EXPECT_EQ(gelu_of(x), x);
    EXPECT_EQ(gelu_of(-x), 0);
  }
  EXPECT_TRUE(std::isnan(gelu_of(NAN)));
  EXPECT_EQ(gelu_of(infinity), infinity);
  EXPECT_FALSE(std::isfinite(gelu_of(-infinity)));
  Stream s(Device::cpu);
  const Tensor x = testing::tensor_of(s, {3e38f, -3e38f, NAN, 0}, {1, 4}), dy = testing::tensor_of(s, {1, 1, 1, 1}, {1, 4});
  Sink dx = plain_sink(s, {1, 4}, DType::f32);
  gelu_backward(s, dy, x, dx);
  EXPECT_EQ(dx.plain.f32()[0], 1);
  EXPECT_EQ(dx.plain.f32()[1], 0);
  EXPECT_TRUE(std::isnan(dx.plain.f32()[2]));
  EXPECT_EQ(dx.plain.f32()[3], 0.5f);
}

TEST(Gelu, AFusedQuantizeGivesTheBitsOfASecondPass) {
  for (const auto [rows, cols] : testing::row_shapes)
    for (const DType dtype : testing::quantized_dtypes) {
      Stream data(Device::cpu);
      const Tensor x = gaussian_tensor(data, {rows, cols}, 1, dtype, 6), dy = gaussian_tensor(data, {rows, cols}, 2, dtype);
      testing::expect_fused_equals_unfused(x.shape, dtype, [&](Stream& s, Sink& y) { gelu_forward(s, x, y); });
      testing::expect_fused_equals_unfused(x.shape, dtype, [&](Stream& s, Sink& dx) { gelu_backward(s, dy, x, dx); });
    }
}

TEST(Gelu, CodesAreReadAsTheValuesThatTheyStandFor) {
  using Kernels = testing::ActivationKernels;
  for (const Shape& shape : testing::coded_shapes)
    for (const DType dtype : testing::coded_dtypes)
      for (const Kernels isa :
           testing::kernels(Kernels{cpu::v3::gelu_forward, cpu::v3::gelu_backward}, Kernels{cpu::v4::gelu_forward, cpu::v4::gelu_backward}))
        testing::expect_codes_are_read_as_values(isa, shape, 1, dtype);
}

TEST(Gelu, SavesTheCodesOfQuantizeInForwardsPass) {
  for (const Shape& shape : testing::coded_shapes)
    for (const DType dtype : testing::coded_dtypes) {
      Stream s(Device::cpu);
      const std::int64_t rows = shape[0], cols = shape[1];
      const auto forward = [](Stream& stream, const Tensor& x, Sink& y, Sink* codes) { gelu_forward(stream, x, y, codes); };
      for (const Tensor& x : {gaussian_tensor(s, {rows, cols}, 1, dtype, 6), testing::odd_tensor(s, {rows, cols}, dtype)})
        testing::expect_saves_what_quantize_stores(s, x, {rows, cols}, forward);
    }
}

TEST(Gelu, DryRunNeedsTheSameMemory) {
  for (const auto [rows, cols] : testing::row_shapes)
    testing::expect_dry_run_agrees([rows = rows, cols = cols](Stream& s) {
      const Tensor x = gaussian_tensor(s, {rows, cols}, 1, DType::bf16);
      Sink y = plain_sink(s, x.shape, DType::bf16), dx = plain_sink(s, x.shape, DType::bf16);
      gelu_forward(s, x, y);
      gelu_backward(s, x, x, dx);
    });
}

TEST(Gelu, RefusesTensorsThatDoNotFit) {
  Stream s(Device::null);
  const Tensor x = s.empty({4, 8}, DType::f32), half = s.empty({4, 8}, DType::bf16);
  Sink y = plain_sink(s, {4, 8}, DType::f32), narrow = plain_sink(s, {4, 7}, DType::f32);
  EXPECT_THROW(gelu_forward(s, x, narrow), ContractError);
  EXPECT_THROW(gelu_forward(s, half, y), ContractError);
  EXPECT_THROW(gelu_backward(s, half, x, y), ContractError);
  EXPECT_THROW(gelu_backward(s, x, x, narrow), ContractError);
}

}  // namespace
}  // namespace octet::ops
