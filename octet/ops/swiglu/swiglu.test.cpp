#include <gtest/gtest.h>

#include "octet/ops/swiglu/swiglu.kernels.hpp"
#include "octet/ops/swiglu/swiglu.math.hpp"
#include "tests/testing/dual.hpp"
#include "tests/testing/saved.hpp"

namespace octet::ops {
namespace {

using testing::Bounded, testing::BoundedLane, testing::Dual, testing::NumberLane;
using testing::bounded, testing::gaussian_tensor, testing::plain_sink, testing::values;

constexpr float infinity = __builtin_inff();

constexpr std::pair<DType, Gate> dtypes_and_gates[] = {
    {DType::f32, Gate::silu}, {DType::bf16, Gate::silu}, {DType::f16, Gate::silu}, {DType::f32, Gate::gelu}, {DType::bf16, Gate::gelu}};

TEST(SwiGlu, ForwardIsWithinItsErrorBoundOnEveryInstructionSet) {
  for (const auto [rows, cols] : testing::row_shapes)
    for (const auto& [dtype, gate] : dtypes_and_gates)
      for (auto* const kernel : testing::kernels(cpu::v3::swiglu_forward, cpu::v4::swiglu_forward)) {
        Stream s(Device::cpu);
        const Tensor x = gaussian_tensor(s, {rows, 2 * cols}, 1, dtype, 6);
        Sink y = plain_sink(s, {rows, cols}, dtype);
        kernel(x, y, gate);
        for (std::int64_t r = 0; r < rows; ++r) {
          const auto in = bounded(values(x, r * 2 * cols, 2 * cols));
          std::vector<Bounded> out(std::size_t(cols), Bounded{});
          swiglu_row(BoundedLane{}, cols, gate, in.data(), out.data());
          testing::expect_within(y.plain, r * cols, out, "y");
        }
      }
}

TEST(SwiGlu, BackwardIsWithinItsErrorBoundOnEveryInstructionSet) {
  for (const auto [rows, cols] : testing::row_shapes)
    for (const auto& [dtype, gate] : dtypes_and_gates)
      for (auto* const kernel : testing::kernels(cpu::v3::swiglu_backward, cpu::v4::swiglu_backward)) {
        Stream s(Device::cpu);
        const Tensor x = gaussian_tensor(s, {rows, 2 * cols}, 1, dtype, 6), dy = gaussian_tensor(s, {rows, cols}, 2, dtype);
        Sink dx = plain_sink(s, x.shape, dtype);
        kernel(dy, x, dx, gate);
        for (std::int64_t r = 0; r < rows; ++r) {
          const auto in = bounded(values(x, r * 2 * cols, 2 * cols)), d = bounded(values(dy, r * cols, cols));
          std::vector<Bounded> out(std::size_t(2 * cols), Bounded{});
          swiglu_backward_row(BoundedLane{}, cols, gate, d.data(), in.data(), out.data());
          testing::expect_within(dx.plain, r * 2 * cols, out, "dx");
        }
      }
}

TEST(SwiGlu, BackwardIsTheDerivativeOfForward) {
  const NumberLane<Dual> lane;
  for (const double gate : {-200.0, -20.0, -1.5, -0.0, 0.25, 3.0, 60.0})
    for (const auto& [which, function] : {std::pair{0, Gate::silu}, {1, Gate::silu}, {0, Gate::gelu}, {1, Gate::gelu}}) {
      Dual x[2] = {gate, 1.75}, y = 0, dx[2] = {};
      const Dual dy = 0.5;
      swiglu_backward_row(lane, 1, function, &dy, x, dx);
      x[which].slope = 1;
      swiglu_row(lane, 1, function, x, &y);
      EXPECT_NEAR(dx[which].value, 0.5 * y.slope, testing::dot_bound(16, 0x1p-53, 2 * (1 + std::fabs(gate)))) << gate << " " << which;
    }
}

float swiglu(float gate, float up, Gate function = Gate::silu) {
  Stream s(Device::cpu);
  Sink y = plain_sink(s, {1, 1}, DType::f32);
  swiglu_forward(s, testing::tensor_of(s, {gate, up}, {1, 2}), y, nullptr, function);
  return *y.plain.f32();
}

TEST(SwiGlu, KnownValues) {
  EXPECT_EQ(swiglu(0, 5), 0);
  for (const double g : {-3.0, -0.5, 0.25, 2.0}) {
    const double u = std::sqrt(2 / M_PI) * (g + 0.044715 * g * g * g);
    EXPECT_NEAR(swiglu(float(g), 2, Gate::gelu), g * (1 + std::tanh(u)), 32 * testing::unit_f32 * std::fabs(g)) << g;
  }
  EXPECT_NEAR(swiglu(std::log(3.0f), 2), 1.5 * std::log(3.0), 8 * testing::unit_f32 * 1.7);  // the logistic function of ln 3 is 3/4
  for (const float g : {0.1f, 1.0f, 7.0f, 30.0f}) EXPECT_NEAR(swiglu(g, 1) - swiglu(-g, 1), g, 16 * testing::unit_f32 * g);
  EXPECT_EQ(swiglu(1000, 3), 3000);
  EXPECT_EQ(swiglu(-1000, 3), 0);
}

TEST(SwiGlu, WhatIsNotFiniteDoesNotPassForANumber) {
  EXPECT_TRUE(std::isnan(swiglu(NAN, 1)));
  EXPECT_TRUE(std::isnan(swiglu(1, NAN)));
  EXPECT_EQ(swiglu(infinity, 1), infinity);
  EXPECT_FALSE(std::isfinite(swiglu(-infinity, 1)));
}

TEST(SwiGlu, AFusedQuantizeGivesTheBitsOfASecondPass) {
  for (const auto [rows, cols] : testing::row_shapes)
    for (const DType dtype : testing::quantized_dtypes) {
      Stream data(Device::cpu);
      const Tensor x = gaussian_tensor(data, {rows, 2 * cols}, 1, dtype, 6), dy = gaussian_tensor(data, {rows, cols}, 2, dtype);
      testing::expect_fused_equals_unfused(dy.shape, dtype, [&](Stream& s, Sink& y) { swiglu_forward(s, x, y); });
      testing::expect_fused_equals_unfused(x.shape, dtype, [&](Stream& s, Sink& dx) { swiglu_backward(s, dy, x, dx); });
    }
}

template <auto forward, auto backward>
testing::ActivationKernels with_silu() {
  return {[](const Saved& x, const Sink& y) { forward(x, y, Gate::silu); },
          [](const Tensor& dy, const Saved& x, const Sink& dx) { backward(dy, x, dx, Gate::silu); }};
}

TEST(SwiGlu, CodesAreReadAsTheValuesThatTheyStandFor) {
  using Kernels = testing::ActivationKernels;
  for (const Shape& shape : testing::coded_shapes)
    for (const DType dtype : testing::coded_dtypes)
      for (const Kernels isa : testing::kernels(with_silu<cpu::v3::swiglu_forward, cpu::v3::swiglu_backward>(),
                                                with_silu<cpu::v4::swiglu_forward, cpu::v4::swiglu_backward>()))
        testing::expect_codes_are_read_as_values(isa, shape, 2, dtype);
}

TEST(SwiGlu, SavesTheCodesOfQuantizeInForwardsPass) {
  for (const Shape& shape : testing::coded_shapes)
    for (const DType dtype : testing::coded_dtypes) {
      Stream s(Device::cpu);
      const std::int64_t rows = shape[0], cols = shape[1];
      const auto forward = [](Stream& stream, const Tensor& x, Sink& y, Sink* codes) { swiglu_forward(stream, x, y, codes); };
      for (const Tensor& x : {gaussian_tensor(s, {rows, 2 * cols}, 1, dtype, 6), testing::odd_tensor(s, {rows, 2 * cols}, dtype)})
        testing::expect_saves_what_quantize_stores(s, x, {rows, cols}, forward);
    }
}

TEST(SwiGlu, DryRunNeedsTheSameMemory) {
  for (const auto [rows, cols] : testing::row_shapes)
    testing::expect_dry_run_agrees([rows = rows, cols = cols](Stream& s) {
      const Tensor x = gaussian_tensor(s, {rows, 2 * cols}, 1, DType::bf16), dy = gaussian_tensor(s, {rows, cols}, 2, DType::bf16);
      Sink y = plain_sink(s, {rows, cols}, DType::bf16), dx = plain_sink(s, {rows, 2 * cols}, DType::bf16);
      swiglu_forward(s, x, y);
      swiglu_backward(s, dy, x, dx);
    });
}

TEST(SwiGlu, RefusesTensorsThatDoNotFit) {
  Stream s(Device::null);
  const Tensor x = s.empty({4, 8}, DType::f32), odd = s.empty({4, 7}, DType::f32), dy = s.empty({4, 4}, DType::f32),
               half = s.empty({4, 4}, DType::bf16);
  Sink y = plain_sink(s, {4, 4}, DType::f32), wide = plain_sink(s, {4, 8}, DType::f32);
  EXPECT_THROW(swiglu_forward(s, x, wide), ContractError);
  EXPECT_THROW(swiglu_forward(s, odd, y), ContractError);
  EXPECT_THROW(swiglu_backward(s, dy, x, y), ContractError);
  EXPECT_THROW(swiglu_backward(s, half, x, wide), ContractError);
  Sink ragged = plain_sink(s, {4, 16}, DType::f32);
  EXPECT_THROW(swiglu_forward(s, testing::codes_of(s, s.empty({4, 32}, DType::f32)), ragged), ContractError)
      << "halves are not whole blocks";
}

}  // namespace
}  // namespace octet::ops
