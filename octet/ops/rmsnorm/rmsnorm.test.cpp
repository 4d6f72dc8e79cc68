#include <gtest/gtest.h>

#include "octet/ops/add/add.hpp"
#include "octet/ops/rmsnorm/rmsnorm.kernels.hpp"
#include "octet/ops/rmsnorm/rmsnorm.math.hpp"
#include "tests/testing/dual.hpp"
#include "tests/testing/sinks.hpp"

namespace octet::ops {
namespace {

using testing::Bounded, testing::BoundedLane, testing::Dual, testing::NumberLane;
using testing::bounded, testing::gaussian_tensor, testing::plain_sink, testing::values;

constexpr float eps = 1e-5f;

struct Case {
  Stream stream{Device::cpu};
  std::int64_t rows, cols;
  Tensor x, w, dy, inv;
  Case(std::int64_t rows, std::int64_t cols, DType dtype)
      : rows(rows),
        cols(cols),
        x(gaussian_tensor(stream, {rows, cols}, 1, dtype, 3)),
        w(gaussian_tensor(stream, {cols}, 2)),
        dy(gaussian_tensor(stream, {rows, cols}, 3, dtype)),
        inv(stream.empty({rows}, DType::f32)) {}
};

TEST(RmsNorm, ForwardIsWithinItsErrorBoundOnEveryInstructionSet) {
  for (const auto [rows, cols] : testing::row_shapes)
    for (const DType dtype : testing::activation_dtypes)
      for (auto* const kernel : testing::kernels(cpu::v3::rmsnorm_forward, cpu::v4::rmsnorm_forward)) {
        Case c(rows, cols, dtype);
        Sink y = plain_sink(c.stream, c.x.shape, dtype);
        kernel({.x = c.x, .w = c.w, .y = y, .inv_rms = c.inv, .eps = eps});
        for (std::int64_t r = 0; r < rows; ++r) {
          std::vector<Bounded> out(std::size_t(cols), Bounded{});
          const auto x = bounded(values(c.x, r * cols, cols));
          const Bounded inv = rmsnorm_row(BoundedLane{}, cols, x.data(), c.w.f32(), 0, eps, out.data());
          testing::expect_within(c.inv, r, {inv}, "inv_rms");
          testing::expect_within(y.plain, r * cols, out, "y");
        }
      }
}

// Another set's sums are added in another order.
struct Isa {
  void (*add)(const RmsNormAdd&);
  void (*forward)(const RmsNormForward&);
};

TEST(RmsNorm, AddLeavesTheSumAndTheStatisticsThatForwardWouldFind) {
  for (const auto [rows, cols] : testing::row_shapes)
    for (const DType dtype : testing::activation_dtypes)
      for (const Isa isa :
           testing::kernels(Isa{cpu::v3::rmsnorm_add, cpu::v3::rmsnorm_forward}, Isa{cpu::v4::rmsnorm_add, cpu::v4::rmsnorm_forward})) {
        Case c(rows, cols, dtype);
        const Tensor sum = c.stream.empty(c.x.shape, dtype), wanted = c.stream.empty(c.x.shape, dtype),
                     inv = c.stream.empty({rows}, DType::f32);
        isa.add({.a = c.x, .b = c.dy, .sum = sum, .inv_rms = inv, .eps = eps});
        add(c.stream, c.x, c.dy, wanted);
        EXPECT_EQ(testing::bytes(sum), testing::bytes(wanted));
        Sink found = plain_sink(c.stream, c.x.shape, dtype), given = plain_sink(c.stream, c.x.shape, dtype);
        isa.forward({.x = sum, .w = c.w, .y = found, .inv_rms = c.inv, .eps = eps});
        EXPECT_EQ(testing::bytes(inv), testing::bytes(c.inv));
        isa.forward({.x = sum, .w = c.w, .y = given, .inv_rms = inv, .eps = NAN, .known = true});
        EXPECT_EQ(testing::bytes(found.plain), testing::bytes(given.plain));
        isa.add({.a = c.x, .b = c.dy, .sum = c.x, .inv_rms = inv, .eps = eps});
        EXPECT_EQ(testing::bytes(c.x), testing::bytes(wanted)) << "in place";
      }
}

TEST(RmsNorm, ForwardOfASumIsTheSumAndThenForward) {
  for (const auto [rows, cols] : testing::row_shapes)
    for (const DType dtype : testing::activation_dtypes)
      for (const Isa isa :
           testing::kernels(Isa{cpu::v3::rmsnorm_add, cpu::v3::rmsnorm_forward}, Isa{cpu::v4::rmsnorm_add, cpu::v4::rmsnorm_forward})) {
        Case c(rows, cols, dtype);
        const Tensor sum = c.stream.empty(c.x.shape, dtype), inv = c.stream.empty({rows}, DType::f32);
        Sink apart = plain_sink(c.stream, c.x.shape, dtype), once = plain_sink(c.stream, c.x.shape, dtype);
        isa.add({.a = c.x, .b = c.dy, .sum = sum, .inv_rms = inv, .eps = eps});
        isa.forward({.x = sum, .w = c.w, .y = apart, .inv_rms = inv, .eps = NAN, .known = true, .offset = 1});
        isa.forward({.x = c.x, .w = c.w, .y = once, .inv_rms = c.inv, .eps = eps, .offset = 1, .added = c.dy});
        EXPECT_EQ(testing::bytes(c.x), testing::bytes(sum));
        EXPECT_EQ(testing::bytes(c.inv), testing::bytes(inv));
        EXPECT_EQ(testing::bytes(once.plain), testing::bytes(apart.plain));
      }
}

TEST(RmsNorm, RowsHaveMeanSquareOneAndDoNotSeeTheirScale) {
  Case c(4, 512, DType::f32);
  const Tensor ones = testing::tensor_of(c.stream, std::vector<float>(512, 1.0f), {512});
  Sink y = plain_sink(c.stream, c.x.shape, DType::f32), scaled = plain_sink(c.stream, c.x.shape, DType::f32);
  rmsnorm_forward(c.stream, {.x = c.x, .w = ones, .y = y, .inv_rms = c.inv, .eps = 0});
  for (std::int64_t i = 0; i < c.x.count(); ++i) c.x.f32()[i] *= 1024;
  rmsnorm_forward(c.stream, {.x = c.x, .w = ones, .y = scaled, .inv_rms = c.inv, .eps = 0});
  EXPECT_EQ(testing::bytes(y.plain), testing::bytes(scaled.plain));
  for (std::int64_t r = 0; r < 4; ++r) {
    double squares = 0;
    for (const double v : values(y.plain, r * 512, 512)) squares += v * v;
    EXPECT_NEAR(squares / 512, 1, 2 * testing::dot_bound(512 / 8 + 12, testing::unit_f32, 1));
  }
}

TEST(RmsNorm, BackwardIsTheDerivativeOfForward) {
  for (const auto& [cols, offset] : {std::pair<std::int64_t, float>{1, 0.0f}, {7, 1.0f}, {33, 0.0f}, {33, 1.0f}}) {
    const auto x = testing::gaussian(std::size_t(cols), 1), w = testing::gaussian(std::size_t(cols), 2),
               dy = testing::gaussian(std::size_t(cols), 3);
    std::vector<Dual> xs(x.begin(), x.end()), ws(w.begin(), w.end()), y(x.size()), dys(dy.begin(), dy.end()), dx(x.size()), dw(x.size());
    const NumberLane<Dual> lane;
    const Dual inv = rmsnorm_row(lane, cols, xs.data(), ws.data(), offset, eps, y.data());
    rmsnorm_backward_row(lane, cols, dys.data(), xs.data(), ws.data(), offset, inv, false, dx.data(), dw.data());
    // One derivative is a sum of `cols` terms, each of some ten operations in double, all below this size.
    const double tolerance = testing::dot_bound(10.0 * double(cols), 0x1p-53, 64 * double(cols) * std::max(1.0, inv.value * inv.value));
    for (std::size_t i = 0; i < x.size(); ++i)
      for (const bool weight : {false, true}) {
        auto& input = weight ? ws[i] : xs[i];
        input.slope = 1;
        rmsnorm_row(lane, cols, xs.data(), ws.data(), offset, eps, y.data());
        input.slope = 0;
        double derivative = 0;
        for (std::size_t k = 0; k < x.size(); ++k) derivative += double(dy[k]) * y[k].slope;
        EXPECT_NEAR((weight ? dw : dx)[i].value, derivative, tolerance) << cols << " " << i << " " << weight;
      }
  }
}

TEST(RmsNorm, BackwardIsWithinItsErrorBoundAndAddsWhereItSaysSo) {
  for (const auto [rows, cols] : testing::row_shapes)
    for (const DType dtype : testing::activation_dtypes)
      for (const bool accumulate : {false, true})
        for (auto* const kernel : testing::kernels(cpu::v3::rmsnorm_backward, cpu::v4::rmsnorm_backward)) {
          Case c(rows, cols, dtype);
          for (std::int64_t r = 0; r < rows; ++r) c.inv.f32()[r] = 0.25f + float(r) / 64;
          const Tensor dx = gaussian_tensor(c.stream, c.x.shape, 4, dtype), dw = gaussian_tensor(c.stream, {cols}, 5);
          const Tensor sums = c.stream.zeros({cpu::threads(), cols}, DType::f32);
          const auto dx_before = values(dx);
          auto dw_wanted = bounded(values(dw));
          kernel({.dy = c.dy, .x = c.x, .w = c.w, .inv_rms = c.inv, .dx = dx, .dw = dw, .accumulate = accumulate}, sums);
          for (std::int64_t r = 0; r < rows; ++r) {
            const auto x = bounded(values(c.x, r * cols, cols)), dy = bounded(values(c.dy, r * cols, cols));
            std::vector<Bounded> out(dx_before.begin() + r * cols, dx_before.begin() + (r + 1) * cols);
            rmsnorm_backward_row(BoundedLane{}, cols, dy.data(), x.data(), c.w.f32(), 0, c.inv.f32()[r], accumulate, out.data(),
                                 dw_wanted.data());
            testing::expect_within(dx, r * cols, out, "dx");
          }
          for (auto& sum : dw_wanted) sum = in_any_order(sum, double(rows + cpu::threads()));
          testing::expect_within(dw, 0, dw_wanted, "dw");
        }
}

TEST(RmsNorm, InputGradientMayReplaceTheOutputGradient) {
  Case c(5, 33, DType::bf16);
  for (std::int64_t r = 0; r < 5; ++r) c.inv.f32()[r] = 0.5f;
  const Tensor dx = c.stream.empty(c.x.shape, DType::bf16), dw = c.stream.zeros({33}, DType::f32);
  rmsnorm_backward(c.stream, {.dy = c.dy, .x = c.x, .w = c.w, .inv_rms = c.inv, .dx = dx, .dw = dw});
  rmsnorm_backward(c.stream, {.dy = c.dy, .x = c.x, .w = c.w, .inv_rms = c.inv, .dx = c.dy, .dw = dw});
  EXPECT_EQ(testing::bytes(dx), testing::bytes(c.dy));
}

TEST(RmsNorm, AFusedQuantizeGivesTheBitsOfASecondPass) {
  for (const auto [rows, cols] : testing::row_shapes)
    for (const DType dtype : testing::quantized_dtypes) {
      Case c(rows, cols, dtype);
      testing::expect_fused_equals_unfused(
          c.x.shape, dtype, [&](Stream& s, Sink& y) { rmsnorm_forward(s, {.x = c.x, .w = c.w, .y = y, .inv_rms = c.inv, .eps = eps}); });
    }
}

TEST(RmsNorm, DryRunNeedsTheSameMemory) {
  for (const auto [rows, cols] : testing::row_shapes)
    testing::expect_dry_run_agrees([rows = rows, cols = cols](Stream& s) {
      const Shape shape{rows, cols};
      const Tensor x = gaussian_tensor(s, shape, 1, DType::bf16), w = gaussian_tensor(s, {cols}, 2), inv = s.empty({rows}, DType::f32);
      Sink y = plain_sink(s, shape, DType::bf16);
      rmsnorm_forward(s, {.x = x, .w = w, .y = y, .inv_rms = inv, .eps = eps});
      rmsnorm_backward(s, {.dy = x, .x = x, .w = w, .inv_rms = inv, .dx = s.empty(shape, DType::bf16), .dw = s.zeros({cols}, DType::f32)});
    });
}

TEST(RmsNorm, RefusesTensorsThatDoNotFit) {
  Stream s(Device::null);
  const auto f32 = [&](Shape shape) { return s.empty(shape, DType::f32); };
  const auto bf16 = [&](Shape shape) { return s.empty(shape, DType::bf16); };
  Sink y = plain_sink(s, {4, 8}, DType::f32), narrow = plain_sink(s, {4, 7}, DType::f32);
  EXPECT_THROW(rmsnorm_forward(s, {.x = f32({4, 8}), .w = f32({8}), .y = narrow, .inv_rms = f32({4})}), ContractError);
  EXPECT_THROW(rmsnorm_forward(s, {.x = bf16({4, 8}), .w = f32({8}), .y = y, .inv_rms = f32({4})}), ContractError);
  EXPECT_THROW(rmsnorm_forward(s, {.x = f32({4, 8}), .w = bf16({8}), .y = y, .inv_rms = f32({4})}), ContractError);
  EXPECT_THROW(rmsnorm_forward(s, {.x = f32({4, 8}), .w = f32({8}), .y = y, .inv_rms = f32({8})}), ContractError);
  const Tensor x = f32({4, 8}), w = f32({8}), inv = f32({4});
  EXPECT_THROW(rmsnorm_forward(s, {.x = x, .w = w, .y = y, .inv_rms = inv, .added = f32({4, 7})}), ContractError);
  EXPECT_THROW(rmsnorm_forward(s, {.x = x, .w = w, .y = y, .inv_rms = inv, .known = true, .added = x}), ContractError);
  EXPECT_THROW(rmsnorm_add(s, {.a = f32({4, 8}), .b = f32({4, 7}), .sum = f32({4, 8}), .inv_rms = f32({4})}), ContractError);
  EXPECT_THROW(rmsnorm_add(s, {.a = f32({4, 8}), .b = f32({4, 8}), .sum = f32({4, 8}), .inv_rms = f32({8})}), ContractError);
  EXPECT_THROW(
      rmsnorm_backward(s, {.dy = f32({4, 8}), .x = f32({4, 8}), .w = f32({8}), .inv_rms = f32({4}), .dx = f32({3, 8}), .dw = f32({8})}),
      ContractError);
  EXPECT_THROW(
      rmsnorm_backward(s, {.dy = f32({4, 8}), .x = f32({4, 8}), .w = f32({8}), .inv_rms = f32({4}), .dx = f32({4, 8}), .dw = bf16({8})}),
      ContractError);
}

}  // namespace
}  // namespace octet::ops
