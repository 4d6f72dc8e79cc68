#include <gtest/gtest.h>

#include "octet/ops/norm_parts/norm_parts.kernels.hpp"
#include "octet/ops/rmsnorm/rmsnorm.hpp"
#include "octet/ops/rmsnorm/rmsnorm.math.hpp"
#include "tests/testing/dual.hpp"
#include "tests/testing/sinks.hpp"

namespace octet::ops {
namespace {

using testing::BoundedLane, testing::bounded, testing::gaussian_tensor, testing::plain_sink, testing::values;

constexpr float eps = 1e-5f;

// A part of a matrix, and columns of others on both sides; complete rows; and columns that are no whole registers.
struct Part {
  std::int64_t rows, all, first, columns;
};
constexpr Part parts[] = {{5, 96, 32, 48}, {3, 64, 0, 64}, {2, 23, 3, 7}, {130, 140, 4, 129}, {0, 8, 4, 4}};

struct Squares {
  void (*squares)(const NormSquares&);
  void (*products)(const NormProducts&);
};

TEST(NormParts, SumsAreWithinTheirErrorBoundOnEveryInstructionSet) {
  for (const Part& p : parts)
    for (const DType dtype : testing::activation_dtypes)
      for (const Squares isa : testing::kernels(Squares{cpu::v3::norm_squares, cpu::v3::norm_products},
                                                Squares{cpu::v4::norm_squares, cpu::v4::norm_products})) {
        Stream s(Device::cpu);
        const Tensor x = gaussian_tensor(s, {p.rows, p.all}, 1, dtype, 3), dy = gaussian_tensor(s, {p.rows, p.all}, 2, dtype),
                     w = gaussian_tensor(s, {p.columns}, 3), inv = gaussian_tensor(s, {p.rows}, 4), sums = s.empty({p.rows}, DType::f32);
        const auto row = [&](const Tensor& t, std::int64_t r) { return bounded(values(t, r * p.all + p.first, p.columns)); };
        isa.squares({.x = {x, p.first}, .columns = p.columns, .sums = sums});
        for (std::int64_t r = 0; r < p.rows; ++r)
          testing::expect_within(sums, r, {rmsnorm_squares(BoundedLane{}, p.columns, row(x, r).data())}, "squares");
        isa.products({.dy = {dy, p.first}, .x = {x, p.first}, .w = w, .inv_rms = inv, .sums = sums, .offset = 1});
        for (std::int64_t r = 0; r < p.rows; ++r)
          testing::expect_within(
              sums, r, {rmsnorm_products(BoundedLane{}, p.columns, row(dy, r).data(), row(x, r).data(), w.f32(), 1.0f, inv.f32()[r])},
              "products");
      }
}

// Two parts, whose sums are added as members of a partition do, against the op of complete rows. A sum is off by its roundings, relative to
// values that stay below `size`.
TEST(NormParts, GiveTheNormAndTheGradientOfCompleteRows) {
  constexpr std::int64_t rows = 9, half = 65, all = 2 * half;
  constexpr double size = 64, tolerance = size * (double(all) + 16) * testing::unit_f32;
  Stream s(Device::cpu);
  const Tensor x = gaussian_tensor(s, {rows, all}, 1), dy = gaussian_tensor(s, {rows, all}, 2), w = gaussian_tensor(s, {all}, 3);
  const Tensor inv = s.empty({rows}, DType::f32), dx = s.empty({rows, all}, DType::f32), dw = s.zeros({all}, DType::f32);
  Sink y = plain_sink(s, x.shape, DType::f32);
  rmsnorm_forward(s, {.x = x, .w = w, .y = y, .inv_rms = inv, .eps = eps, .offset = 1});
  rmsnorm_backward(s, {.dy = dy, .x = x, .w = w, .inv_rms = inv, .dx = dx, .dw = dw, .offset = 1});

  const Tensor sums = s.zeros({rows}, DType::f32), own = s.empty({rows}, DType::f32), means = s.zeros({rows}, DType::f32);
  const auto add_to = [&](const Tensor& total) {
    for (std::int64_t r = 0; r < rows; ++r) total.f32()[r] += own.f32()[r];
  };
  const auto weight = [&](std::int64_t first) { return w.rows(first, half); };
  for (const std::int64_t first : {std::int64_t(0), half}) norm_squares(s, {.x = {x, first}, .columns = half, .sums = own}), add_to(sums);
  norm_factors(s, {.sums = sums, .columns = all, .eps = eps});
  for (std::int64_t r = 0; r < rows; ++r) EXPECT_NEAR(sums.f32()[r], inv.f32()[r], tolerance) << r;
  for (const std::int64_t first : {std::int64_t(0), half})
    norm_products(s, {.dy = {dy, first}, .x = {x, first}, .w = weight(first), .inv_rms = sums, .sums = own, .offset = 1}), add_to(means);
  norm_means(s, {.sums = means, .columns = all});
  for (const std::int64_t first : {std::int64_t(0), half}) {
    const auto part = [&](const Tensor& t) {
      const Tensor out = s.empty({rows, half}, DType::f32);
      copy_columns(s, {.from = t, .from_column = first, .to = out, .columns = half});
      return out;
    };
    const Tensor own_x = part(x), own_dx = s.empty(own_x.shape, DType::f32), own_dw = s.zeros({half}, DType::f32);
    Sink own_y = plain_sink(s, own_x.shape, DType::f32);
    rmsnorm_forward(s, {.x = own_x, .w = weight(first), .y = own_y, .inv_rms = sums, .eps = NAN, .known = true, .offset = 1});
    rmsnorm_backward(
        s, {.dy = part(dy), .x = own_x, .w = weight(first), .inv_rms = sums, .dx = own_dx, .dw = own_dw, .offset = 1, .mean = means});
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t c = 0; c < half; ++c) {
        const std::int64_t here = r * half + c, there = r * all + first + c;
        EXPECT_NEAR(own_y.plain.f32()[here], y.plain.f32()[there], tolerance);
        EXPECT_NEAR(own_dx.f32()[here], dx.f32()[there], tolerance);
      }
    for (std::int64_t c = 0; c < half; ++c) EXPECT_NEAR(own_dw.f32()[c], dw.f32()[first + c], tolerance);
  }
}

TEST(NormParts, RefuseTensorsThatDoNotFit) {
  Stream s(Device::null);
  const auto f32 = [&](Shape shape) { return s.empty(shape, DType::f32); };
  EXPECT_THROW(norm_squares(s, {.x = {f32({4, 8}), 5}, .columns = 4, .sums = f32({4})}), ContractError);
  EXPECT_THROW(norm_squares(s, {.x = {f32({4, 8})}, .columns = 8, .sums = f32({8})}), ContractError);
  EXPECT_THROW(norm_products(s, {.dy = {f32({4, 8})}, .x = {f32({3, 8})}, .w = f32({8}), .inv_rms = f32({3}), .sums = f32({3})}),
               ContractError);
  EXPECT_THROW(norm_products(s, {.dy = {f32({4, 8})}, .x = {f32({4, 8})}, .w = f32({9}), .inv_rms = f32({4}), .sums = f32({4})}),
               ContractError);
  EXPECT_THROW(norm_factors(s, {.sums = f32({4}), .columns = 0, .eps = eps}), ContractError);
}

}  // namespace
}  // namespace octet::ops
