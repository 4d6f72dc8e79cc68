#include <cmath>

#include "octet/ops/layernorm/layernorm.hpp"
#include "tests/cuda/sinks.hpp"

// Row sums are added in another order on a GPU: relative to the sum of magnitudes, D units at most. Where a row has each value with both
// signs and the squares are small multiples of a power of two, both sums are exact in any order, and all bits must agree.

namespace octet::parity {
namespace {

constexpr double unit_f32 = 0x1p-24;

/// Row after row; an odd last column is 0.
std::vector<float> exact_values(std::int64_t rows, std::int64_t cols) {
  std::vector<float> v;
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < cols; ++c) {
      const float size = float((r * 5 + c / 2 * 7 + c / 26) % 9) * 0.25f;
      v.push_back(cols % 2 == 1 && c == cols - 1 ? 0.0f : c % 2 ? -size : size);
    }
  return v;
}

// Rows to which others are added first: twice an exact value is exact.
Case of_sum(DType dtype, const Shape& shape) {
  return {format("layernorm_forward of a sum {} {}", dtype, shape), [=](Side& side) {
            const std::int64_t T = shape[0], D = shape[1];
            const Tensor a = side.from(exact_values(T, D), shape, dtype), sum = side.poisoned(shape, dtype), w = side.gaussian({D}, 2),
                         b = side.gaussian({D}, 3), mean = side.poisoned({T}, DType::f32), inv = side.poisoned({T}, DType::f32);
            each_sink(side, shape, dtype, [&](Stream& stream, ops::Sink& y) {
              copy(stream, a, sum);
              ops::layernorm_forward(stream, {.x = sum, .w = w, .b = b, .y = y, .mean = mean, .inv_std = inv, .eps = 1e-5f, .added = a});
            });
            side.result("sum", sum, same_bits()), side.result("mean", mean, same_bits()), side.result("inv_std", inv, same_bits());
          }};
}

std::vector<Case> make() {
  std::vector<Case> cases;
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
    for (const Shape& shape : few_row_shapes) cases.push_back(of_sum(dtype, shape));
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
    for (const Shape& shape : norm_shapes) {
      const std::int64_t T = shape[0], D = shape[1];
      cases.push_back({format("layernorm_forward {} {}", dtype, shape), [=](Side& side) {
                         const Tensor mean = side.poisoned({T}, DType::f32), inv = side.poisoned({T}, DType::f32);
                         SinkOnSide y(side, {"plain", {.format = dtype}}, shape, dtype, {});
                         ops::layernorm_forward(side.stream(), {.x = side.gaussian(shape, 1, dtype),
                                                                .w = side.gaussian({D}, 2),
                                                                .b = side.gaussian({D}, 3),
                                                                .y = y.sink,
                                                                .mean = mean,
                                                                .inv_std = inv,
                                                                .eps = 1e-5f});
                         // |x| and |w| are below 6, inv_std a few, for one column 316 with x - mean = 0.
                         const double relative = (double(D) + 8) * unit_f32;
                         side.result("mean", mean, within(6 * relative)), side.result("inv_std", inv, within(320 * relative));
                         side.result("y", y.sink.plain, within(320 * relative));
                       }});
      cases.push_back({format("layernorm_forward exact {} {}", dtype, shape), [=](Side& side) {
                         const Tensor x = side.from(exact_values(T, D), shape, dtype), w = side.gaussian({D}, 2), b = side.gaussian({D}, 3);
                         const Tensor mean = side.poisoned({T}, DType::f32), inv = side.poisoned({T}, DType::f32);
                         each_sink(side, shape, dtype, [&](Stream& stream, ops::Sink& y) {
                           ops::layernorm_forward(stream, {.x = x, .w = w, .b = b, .y = y, .mean = mean, .inv_std = inv, .eps = 1e-5f});
                         });
                         side.result("mean", mean, same_bits()), side.result("inv_std", inv, same_bits());
                       }});
      cases.push_back({format("layernorm_add {} {}", dtype, shape), [=](Side& side) {
                         const Tensor mean = side.poisoned({T}, DType::f32), inv = side.poisoned({T}, DType::f32),
                                      sum = side.poisoned(shape, dtype);
                         // Twice an exact value: its sum's bits agree in any order.
                         const Tensor a = side.from(exact_values(T, D), shape, dtype);
                         ops::layernorm_add(side.stream(), {.a = a, .b = a, .sum = sum, .mean = mean, .inv_std = inv, .eps = 1e-6f});
                         side.result("sum", sum, same_bits()), side.result("mean", mean, same_bits()),
                             side.result("inv_std", inv, same_bits());
                         const Tensor x = side.gaussian(shape, 1, dtype), y = side.gaussian(shape, 2, dtype, 0.1);
                         const Tensor others = side.poisoned(shape, dtype), mean2 = side.poisoned({T}, DType::f32),
                                      inv2 = side.poisoned({T}, DType::f32);
                         ops::layernorm_add(side.stream(), {.a = x, .b = y, .sum = others, .mean = mean2, .inv_std = inv2, .eps = 1e-5f});
                         side.result("sum of others", others, same_bits());
                         side.result("their inv_std", inv2, within(320 * (double(D) + 8) * unit_f32));
                       }});
      cases.push_back({format("layernorm_forward known {} {}", dtype, shape), [=](Side& side) {
                         const Tensor x = side.gaussian(shape, 1, dtype), w = side.gaussian({D}, 2), b = side.gaussian({D}, 3);
                         const Tensor mean = side.gaussian({T}, 20), inv = side.gaussian({T}, 21);
                         each_sink(side, shape, dtype, [&](Stream& stream, ops::Sink& y) {
                           ops::layernorm_forward(
                               stream, {.x = x, .w = w, .b = b, .y = y, .mean = mean, .inv_std = inv, .eps = NAN, .known = true});
                         });
                       }});
    }
  return cases;
}
const Cases registered(make);

}  // namespace
}  // namespace octet::parity
