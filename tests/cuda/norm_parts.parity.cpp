#include <array>

#include "octet/ops/norm_parts/norm_parts.hpp"
#include "octet/ops/rmsnorm/rmsnorm.hpp"
#include "tests/cuda/parity.hpp"

// Row sums are added in another order on a GPU: each of n products is off by at most n units.

namespace octet::parity {
namespace {

constexpr double size = 64;  // magnitudes of the products that these inputs give stay below `size`

Case sums(DType dtype, std::int64_t tokens, std::int64_t all, std::int64_t first, std::int64_t columns) {
  return {format("norm_parts {} {} tokens, {} of {} columns from {}", dtype, tokens, columns, all, first), [=](Side& side) {
            Stream& s = side.stream();
            const Tensor x = side.gaussian({tokens, all}, 1, dtype), dy = side.gaussian({tokens, all}, 2, dtype),
                         w = side.gaussian({columns}, 3), inv = side.gaussian({tokens}, 4), squares = s.empty({tokens}, DType::f32),
                         products = s.empty({tokens}, DType::f32);
            const double bound = size * double(columns) * double(columns + 8) * testing::unit_f32;
            ops::norm_squares(s, {.x = {x, first}, .columns = columns, .sums = squares});
            side.result("squares", squares, within(bound));
            ops::norm_products(s, {.dy = {dy, first}, .x = {x, first}, .w = w, .inv_rms = inv, .sums = products, .offset = 1});
            side.result("products", products, within(bound));
          }};
}

Case of_sums(std::int64_t tokens) {
  return {format("norm_parts of sums of {} tokens", tokens), [=](Side& side) {
            std::vector<float> squares;
            for (std::int64_t t = 0; t < tokens; ++t) squares.push_back(float(t) * 0.75f);
            const Tensor factors = side.from(squares, {tokens}), means = side.from(squares, {tokens});
            ops::norm_factors(side.stream(), {.sums = factors, .columns = 4096, .eps = 1e-5f});
            ops::norm_means(side.stream(), {.sums = means, .columns = 4096});
            side.result("factors", factors, same_bits()), side.result("means", means, same_bits());
          }};
}

Case gradient(DType dtype, const Shape& shape, bool accumulate) {
  return {format("rmsnorm_backward of a part {} {} accumulate {}", dtype, shape, accumulate), [=](Side& side) {
            const std::int64_t T = shape[0], D = shape[1];
            std::vector<float> inv, mean;
            for (std::int64_t t = 0; t < T; ++t) inv.push_back(0.75f + 0.5f * float(t % 3)), mean.push_back(float(t % 5) * 0.1f);
            const Tensor dx = side.gaussian(shape, 5, dtype), dw = side.gaussian({D}, 6);
            ops::rmsnorm_backward(side.stream(), {.dy = side.gaussian(shape, 1, dtype),
                                                  .x = side.gaussian(shape, 2, dtype),
                                                  .w = side.gaussian({D}, 3),
                                                  .inv_rms = side.from(inv, {T}),
                                                  .dx = dx,
                                                  .dw = dw,
                                                  .accumulate = accumulate,
                                                  .mean = side.from(mean, {T})});
            side.result("dx", dx, same_bits());
            side.result("dw", dw, within(size * double(T + D) * testing::unit_f32));
          }};
}

std::vector<Case> make() {
  std::vector<Case> cases;
  for (const std::int64_t tokens : {0, 1, 300}) cases.push_back(of_sums(tokens));
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    for (const std::int64_t tokens : {0, 1, 300})
      for (const auto& [all, first, columns] : {std::array<std::int64_t, 3>{3072, 0, 1024}, {3072, 1024, 1024}, {23, 3, 7}, {96, 4, 64}})
        cases.push_back(sums(dtype, tokens, all, first, columns));
    for (const Shape shape : {Shape{0, 16}, Shape{5, 7}, Shape{300, 896}, Shape{33, 3584}})
      for (const bool accumulate : {false, true}) cases.push_back(gradient(dtype, shape, accumulate));
  }
  return cases;
}
const Cases registered(make);

}  // namespace
}  // namespace octet::parity
