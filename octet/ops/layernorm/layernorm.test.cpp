#include <gtest/gtest.h>

#include "octet/ops/add/add.hpp"
#include "octet/ops/layernorm/layernorm.kernels.hpp"
#include "octet/ops/layernorm/layernorm.math.hpp"
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
  Tensor x, w, b, dy, mean, inv;
  Case(std::int64_t rows, std::int64_t cols, DType dtype)
      : rows(rows),
        cols(cols),
        x(gaussian_tensor(stream, {rows, cols}, 1, dtype, 3)),
        w(gaussian_tensor(stream, {cols}, 2)),
        b(gaussian_tensor(stream, {cols}, 6)),
        dy(gaussian_tensor(stream, {rows, cols}, 3, dtype)),
        mean(stream.empty({rows}, DType::f32)),
        inv(stream.empty({rows}, DType::f32)) {}
};

void expect_forward_within_bound(Case& c, DType dtype) {
  for (auto* const kernel : testing::kernels(cpu::v3::layernorm_forward, cpu::v4::layernorm_forward)) {
    Sink y = plain_sink(c.stream, c.x.shape, dtype);
    kernel({.x = c.x, .w = c.w, .b = c.b, .y = y, .mean = c.mean, .inv_std = c.inv, .eps = eps});
    for (std::int64_t r = 0; r < c.rows; ++r) {
      std::vector<Bounded> out(std::size_t(c.cols), Bounded{});
      const auto x = bounded(values(c.x, r * c.cols, c.cols));
      const auto row = layernorm_row(BoundedLane{}, c.cols, x.data(), c.w.f32(), c.b.f32(), eps, out.data());
      testing::expect_within(c.mean, r, {row.mean}, "mean");
      testing::expect_within(c.inv, r, {row.inv_std}, "inv_std");
      testing::expect_within(y.plain, r * c.cols, out, "y");
    }
  }
}

TEST(LayerNorm, ForwardIsWithinItsErrorBoundOnEveryInstructionSet) {
  for (const auto [rows, cols] : testing::row_shapes)
    for (const DType dtype : testing::activation_dtypes) {
      Case c(rows, cols, dtype);
      expect_forward_within_bound(c, dtype);
    }
}

// Another set's sums are added in another order.
struct Isa {
  void (*add)(const LayerNormAdd&);
  void (*forward)(const LayerNormForward&);
};

TEST(LayerNorm, AddLeavesTheSumAndTheStatisticsThatForwardWouldFind) {
  for (const auto [rows, cols] : testing::row_shapes)
    for (const DType dtype : testing::activation_dtypes)
      for (const Isa isa : testing::kernels(Isa{cpu::v3::layernorm_add, cpu::v3::layernorm_forward},
                                            Isa{cpu::v4::layernorm_add, cpu::v4::layernorm_forward})) {
        Case c(rows, cols, dtype);
        const Tensor sum = c.stream.empty(c.x.shape, dtype), wanted = c.stream.empty(c.x.shape, dtype),
                     inv = c.stream.empty({rows}, DType::f32), mean = c.stream.empty({rows}, DType::f32);
        isa.add({.a = c.x, .b = c.dy, .sum = sum, .mean = mean, .inv_std = inv, .eps = eps});
        add(c.stream, c.x, c.dy, wanted);
        EXPECT_EQ(testing::bytes(sum), testing::bytes(wanted));
        Sink found = plain_sink(c.stream, c.x.shape, dtype), given = plain_sink(c.stream, c.x.shape, dtype);
        isa.forward({.x = sum, .w = c.w, .b = c.b, .y = found, .mean = c.mean, .inv_std = c.inv, .eps = eps});
        EXPECT_EQ(testing::bytes(mean), testing::bytes(c.mean));
        EXPECT_EQ(testing::bytes(inv), testing::bytes(c.inv));
        isa.forward({.x = sum, .w = c.w, .b = c.b, .y = given, .mean = mean, .inv_std = inv, .eps = NAN, .known = true});
        EXPECT_EQ(testing::bytes(found.plain), testing::bytes(given.plain));
      }
}

TEST(LayerNorm, ForwardOfASumIsTheSumAndThenForward) {
  for (const auto [rows, cols] : testing::row_shapes)
    for (const DType dtype : testing::activation_dtypes)
      for (const Isa isa : testing::kernels(Isa{cpu::v3::layernorm_add, cpu::v3::layernorm_forward},
                                            Isa{cpu::v4::layernorm_add, cpu::v4::layernorm_forward})) {
        Case c(rows, cols, dtype);
        const Tensor sum = c.stream.empty(c.x.shape, dtype), inv = c.stream.empty({rows}, DType::f32),
                     mean = c.stream.empty({rows}, DType::f32);
        Sink apart = plain_sink(c.stream, c.x.shape, dtype), once = plain_sink(c.stream, c.x.shape, dtype);
        isa.add({.a = c.x, .b = c.dy, .sum = sum, .mean = mean, .inv_std = inv, .eps = eps});
        isa.forward({.x = sum, .w = c.w, .b = c.b, .y = apart, .mean = mean, .inv_std = inv, .eps = NAN, .known = true});
        isa.forward({.x = c.x, .w = c.w, .b = c.b, .y = once, .mean = c.mean, .inv_std = c.inv, .eps = eps, .added = c.dy});
        EXPECT_EQ(testing::bytes(c.x), testing::bytes(sum));
        EXPECT_EQ(testing::bytes(c.mean), testing::bytes(mean));
        EXPECT_EQ(testing::bytes(c.inv), testing::bytes(inv));
        EXPECT_EQ(testing::bytes(once.plain), testing::bytes(apart.plain));
      }
}

TEST(LayerNorm, RowsHaveMeanZeroAndVarianceOne) {
  Case c(4, 512, DType::f32);
  const Tensor ones = testing::tensor_of(c.stream, std::vector<float>(512, 1.0f), {512}), zeros = c.stream.zeros({512}, DType::f32);
  Sink y = plain_sink(c.stream, c.x.shape, DType::f32);
  layernorm_forward(c.stream, {.x = c.x, .w = ones, .b = zeros, .y = y, .mean = c.mean, .inv_std = c.inv, .eps = 0});
  const double tolerance = 2 * testing::dot_bound(2 * (512 / 8 + 12), testing::unit_f32, 1);
  for (std::int64_t r = 0; r < 4; ++r) {
    double total = 0, squares = 0;
    for (const double v : values(y.plain, r * 512, 512)) total += v, squares += v * v;
    EXPECT_NEAR(total / 512, 0, tolerance);
    EXPECT_NEAR(squares / 512, 1, tolerance);
  }
}

// An offset of a million standard deviations leaves a variance in one pass, mean of squares less square of mean, without a digit.
TEST(LayerNorm, VarianceSurvivesALargeOffset) {
  Stream stream(Device::cpu);
  std::vector<float> x(256);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 1048576.0f + (i % 2 != 0 ? 1.0f : -1.0f);
  const Tensor mean = stream.empty({1}, DType::f32), inv = stream.empty({1}, DType::f32),
               w = testing::tensor_of(stream, std::vector<float>(256, 1.0f), {256});
  Sink y = plain_sink(stream, {1, 256}, DType::f32);
  layernorm_forward(stream, {.x = testing::tensor_of(stream, x, {1, 256}),
                             .w = w,
                             .b = stream.zeros({256}, DType::f32),
                             .y = y,
                             .mean = mean,
                             .inv_std = inv,
                             .eps = 0});
  EXPECT_EQ(*mean.f32(), 1048576.0f);
  EXPECT_EQ(*inv.f32(), 1.0f);
}

TEST(LayerNorm, BackwardIsTheDerivativeOfForward) {
  for (const std::int64_t cols : {2, 7, 33}) {
    const auto n = std::size_t(cols);
    const auto x = testing::gaussian(n, 1), w = testing::gaussian(n, 2), dy = testing::gaussian(n, 3), b = testing::gaussian(n, 4);
    std::vector<Dual> xs(x.begin(), x.end()), ws(w.begin(), w.end()), bs(b.begin(), b.end()), dys(dy.begin(), dy.end()), y(n), dx(n), dw(n),
        db(n);
    const NumberLane<Dual> lane;
    const auto row = layernorm_row(lane, cols, xs.data(), ws.data(), bs.data(), eps, y.data());
    layernorm_backward_row(lane, cols, dys.data(), xs.data(), ws.data(), row, false, dx.data(), dw.data(), db.data());
    // One derivative is a sum of `cols` terms, each of some twenty operations in double, all below this size.
    const double inv = row.inv_std.value,
                 tolerance = testing::dot_bound(20.0 * double(cols), 0x1p-53, 64 * double(cols) * std::max(1.0, inv * inv * inv));
    for (std::size_t i = 0; i < n; ++i)
      for (const int which : {0, 1, 2}) {
        auto& input = which == 0 ? xs[i] : which == 1 ? ws[i] : bs[i];
        input.slope = 1;
        layernorm_row(lane, cols, xs.data(), ws.data(), bs.data(), eps, y.data());
        input.slope = 0;
        double derivative = 0;
        for (std::size_t k = 0; k < n; ++k) derivative += double(dy[k]) * y[k].slope;
        EXPECT_NEAR((which == 0 ? dx : which == 1 ? dw : db)[i].value, derivative, tolerance) << cols << " " << i << " " << which;
      }
  }
}

TEST(LayerNorm, BackwardIsWithinItsErrorBoundAndAddsWhereItSaysSo) {
  for (const auto [rows, cols] : testing::row_shapes)
    for (const DType dtype : testing::activation_dtypes)
      for (const bool accumulate : {false, true})
        for (auto* const kernel : testing::kernels(cpu::v3::layernorm_backward, cpu::v4::layernorm_backward)) {
          Case c(rows, cols, dtype);
          for (std::int64_t r = 0; r < rows; ++r) c.inv.f32()[r] = 0.25f + float(r) / 64, c.mean.f32()[r] = float(r) / 32 - 1;
          const Tensor dx = gaussian_tensor(c.stream, c.x.shape, 4, dtype), dw = gaussian_tensor(c.stream, {cols}, 5),
                       db = gaussian_tensor(c.stream, {cols}, 7);
          const Tensor sums = c.stream.zeros({cpu::threads(), 2 * cols}, DType::f32);
          const auto before = values(dx);
          auto dw_wanted = bounded(values(dw)), db_wanted = bounded(values(db));
          kernel({.dy = c.dy, .x = c.x, .w = c.w, .mean = c.mean, .inv_std = c.inv, .dx = dx, .dw = dw, .db = db, .accumulate = accumulate},
                 sums);
          for (std::int64_t r = 0; r < rows; ++r) {
            const auto x = bounded(values(c.x, r * cols, cols)), dy = bounded(values(c.dy, r * cols, cols));
            std::vector<Bounded> out(before.begin() + r * cols, before.begin() + (r + 1) * cols);
            layernorm_backward_row(BoundedLane{}, cols, dy.data(), x.data(), c.w.f32(),
                                   LayerNormRow<float>{c.mean.f32()[r], c.inv.f32()[r]}, accumulate, out.data(), dw_wanted.data(),
                                   db_wanted.data());
            testing::expect_within(dx, r * cols, out, "dx");
          }
          for (auto* const wanted : {&dw_wanted, &db_wanted})
            for (auto& sum : *wanted) sum = in_any_order(sum, double(rows + cpu::threads()));
          testing::expect_within(dw, 0, dw_wanted, "dw");
          testing::expect_within(db, 0, db_wanted, "db");
        }
}

TEST(LayerNorm, AFusedQuantizeGivesTheBitsOfASecondPass) {
  for (const auto [rows, cols] : testing::row_shapes)
    for (const DType dtype : testing::quantized_dtypes) {
      Case c(rows, cols, dtype);
      testing::expect_fused_equals_unfused(c.x.shape, dtype, [&](Stream& s, Sink& y) {
        layernorm_forward(s, {.x = c.x, .w = c.w, .b = c.b, .y = y, .mean = c.mean, .inv_std = c.inv, .eps = eps});
      });
    }
}

TEST(LayerNorm, DryRunNeedsTheSameMemory) {
  for (const auto [rows, cols] : testing::row_shapes)
    testing::expect_dry_run_agrees([rows = rows, cols = cols](Stream& s) {
      const Shape shape{rows, cols};
      const auto vector = [&](std::int64_t n) { return s.zeros({n}, DType::f32); };
      const Tensor x = gaussian_tensor(s, shape, 1, DType::bf16), w = vector(cols), mean = vector(rows), inv = vector(rows);
      Sink y = plain_sink(s, shape, DType::bf16);
      layernorm_forward(s, {.x = x, .w = w, .b = w, .y = y, .mean = mean, .inv_std = inv, .eps = eps});
      layernorm_backward(s, {.dy = x,
                             .x = x,
                             .w = w,
                             .mean = mean,
                             .inv_std = inv,
                             .dx = s.empty(shape, DType::bf16),
                             .dw = vector(cols),
                             .db = vector(cols)});
    });
}

TEST(LayerNorm, RefusesTensorsThatDoNotFit) {
  Stream s(Device::null);
  const auto f32 = [&](Shape shape) { return s.empty(shape, DType::f32); };
  Sink y = plain_sink(s, {4, 8}, DType::f32), narrow = plain_sink(s, {4, 7}, DType::f32);
  const Tensor x = f32({4, 8}), w = f32({8}), t = f32({4});
  EXPECT_THROW(layernorm_forward(s, {.x = x, .w = w, .b = w, .y = narrow, .mean = t, .inv_std = t}), ContractError);
  EXPECT_THROW(layernorm_forward(s, {.x = x, .w = w, .b = t, .y = y, .mean = t, .inv_std = t}), ContractError);
  EXPECT_THROW(layernorm_forward(s, {.x = x, .w = w, .b = w, .y = y, .mean = w, .inv_std = t}), ContractError);
  EXPECT_THROW(layernorm_backward(s, {.dy = x, .x = x, .w = w, .mean = t, .inv_std = t, .dx = f32({4, 7}), .dw = w, .db = w}),
               ContractError);
  EXPECT_THROW(layernorm_backward(s, {.dy = x, .x = x, .w = w, .mean = t, .inv_std = t, .dx = x, .dw = w, .db = t}), ContractError);
}

}  // namespace
}  // namespace octet::ops
