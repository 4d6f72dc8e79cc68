#include <cmath>

#include "octet/ops/rmsnorm/rmsnorm.hpp"
#include "tests/cuda/sinks.hpp"

// Sums of squares are added in another order on a GPU: relative to the sum, D units at most, so half of that and a few more of inv_rms.
// Where the squares are small multiples of a power of two their sum is exact in any order, and all bits must agree.

namespace octet::parity {
namespace {

constexpr double unit_f32 = 0x1p-24;

std::vector<float> exact_values(std::int64_t n) {
  std::vector<float> v;
  for (std::int64_t i = 0; i < n; ++i) v.push_back(float((i * 7 + i / 13) % 9 - 4) * 0.25f);
  return v;
}

// Rows to which others are added first. Few rows are filled by one launch where a sink is of rows and not measured. Twice an exact value is
// exact, so all bits must agree.
Case of_sum(DType dtype, const Shape& shape) {
  return {format("rmsnorm_forward of a sum {} {}", dtype, shape), [=](Side& side) {
            const std::int64_t T = shape[0], D = shape[1];
            const Tensor a = side.from(exact_values(T * D), shape, dtype), sum = side.poisoned(shape, dtype), w = side.gaussian({D}, 2),
                         inv = side.poisoned({T}, DType::f32);
            each_sink(side, shape, dtype, [&](Stream& stream, ops::Sink& y) {
              copy(stream, a, sum);
              ops::rmsnorm_forward(stream, {.x = sum, .w = w, .y = y, .inv_rms = inv, .eps = 1e-6f, .offset = 1, .added = a});
            });
            side.result("sum", sum, same_bits()), side.result("inv_rms", inv, same_bits());
          }};
}

std::vector<Case> make() {
  std::vector<Case> cases;
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
    for (const Shape& shape : few_row_shapes) cases.push_back(of_sum(dtype, shape));
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
    for (const Shape& shape : norm_shapes) {
      const std::int64_t T = shape[0], D = shape[1];
      cases.push_back({format("rmsnorm_forward {} {}", dtype, shape), [=](Side& side) {
                         const Tensor inv = side.poisoned({T}, DType::f32);
                         SinkOnSide y(side, {"plain", {.format = dtype}}, shape, dtype, {});
                         ops::rmsnorm_forward(
                             side.stream(),
                             {.x = side.gaussian(shape, 1, dtype), .w = side.gaussian({D}, 2), .y = y.sink, .inv_rms = inv, .eps = 1e-6f});
                         // For one column inv_rms is up to 1000, then y at most 6; for more, inv_rms is a few, and |x w| below 40.
                         const double relative = (double(D) / 2 + 8) * unit_f32;
                         side.result("inv_rms", inv, within(1000 * relative)), side.result("y", y.sink.plain, within(160 * relative));
                       }});
      cases.push_back({format("rmsnorm_forward exact {} {}", dtype, shape), [=](Side& side) {
                         const Tensor x = side.from(exact_values(T * D), shape, dtype), w = side.gaussian({D}, 2),
                                      inv = side.poisoned({T}, DType::f32);
                         each_sink(side, shape, dtype, [&](Stream& stream, ops::Sink& y) {
                           ops::rmsnorm_forward(stream, {.x = x, .w = w, .y = y, .inv_rms = inv, .eps = 1e-6f});
                         });
                         side.result("inv_rms", inv, same_bits());
                       }});
      cases.push_back({format("rmsnorm_add {} {}", dtype, shape), [=](Side& side) {
                         const Tensor inv = side.poisoned({T}, DType::f32), sum = side.poisoned(shape, dtype);
                         // Twice an exact value: its sum's bits agree in any order.
                         const Tensor a = side.from(exact_values(T * D), shape, dtype);
                         ops::rmsnorm_add(side.stream(), {.a = a, .b = a, .sum = sum, .inv_rms = inv, .eps = 1e-6f});
                         side.result("sum", sum, same_bits()), side.result("inv_rms", inv, same_bits());
                         const Tensor x = side.gaussian(shape, 1, dtype), y = side.gaussian(shape, 2, dtype, 0.1);
                         const Tensor others = side.poisoned(shape, dtype), inv2 = side.poisoned({T}, DType::f32);
                         ops::rmsnorm_add(side.stream(), {.a = x, .b = y, .sum = others, .inv_rms = inv2, .eps = 1e-5f});
                         side.result("sum of others", others, same_bits());
                         side.result("their inv_rms", inv2, within(1000 * (double(D) / 2 + 8) * unit_f32));
                       }});
      cases.push_back({format("rmsnorm_forward known {} {}", dtype, shape), [=](Side& side) {
                         const Tensor x = side.gaussian(shape, 1, dtype), w = side.gaussian({D}, 2), inv = side.gaussian({T}, 20);
                         each_sink(side, shape, dtype, [&](Stream& stream, ops::Sink& y) {
                           ops::rmsnorm_forward(stream, {.x = x, .w = w, .y = y, .inv_rms = inv, .eps = NAN, .known = true, .offset = 1});
                         });
                       }});
    }
  return cases;
}
const Cases registered(make);

}  // namespace
}  // namespace octet::parity
