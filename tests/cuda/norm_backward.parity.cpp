#include "octet/ops/layernorm/layernorm.hpp"
#include "octet/ops/rmsnorm/rmsnorm.hpp"
#include "tests/cuda/parity.hpp"

// Row sums are added in another order on a GPU: each of n products is off by at most n units, and the following operations multiply that by
// values of a few units in size. Columns of dw are sums of T such products.

namespace octet::parity {
namespace {

constexpr double unit_f32 = 0x1p-24, size = 64;  // magnitudes of the products that these inputs give stay below `size`

std::vector<Case> make() {
  std::vector<Case> cases;
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
    for (const Shape shape : {Shape{0, 16}, Shape{1, 1}, Shape{5, 7}, Shape{300, 896}, Shape{64, 1536}, Shape{33, 3584}})
      for (const bool accumulate : {false, true}) {
        const std::int64_t T = shape[0], D = shape[1];
        const double row = size * double(D + 8) * unit_f32, column = size * double(T + D) * unit_f32;
        cases.push_back({format("rmsnorm_backward {} {} accumulate {}", dtype, shape, accumulate), [=](Side& side) {
                           std::vector<float> inv;
                           for (std::int64_t t = 0; t < T; ++t) inv.push_back(0.75f + 0.5f * float(t % 3));
                           const Tensor dx = side.gaussian(shape, 5, dtype), dw = side.gaussian({D}, 6);
                           ops::rmsnorm_backward(side.stream(), {.dy = side.gaussian(shape, 1, dtype),
                                                                 .x = side.gaussian(shape, 2, dtype),
                                                                 .w = side.gaussian({D}, 3),
                                                                 .inv_rms = side.from(inv, {T}),
                                                                 .dx = dx,
                                                                 .dw = dw,
                                                                 .accumulate = accumulate,
                                                                 .offset = accumulate ? 1.0f : 0.0f});
                           side.result("dx", dx, within(2 * row)), side.result("dw", dw, within(column));
                         }});
        cases.push_back({format("layernorm_backward {} {} accumulate {}", dtype, shape, accumulate), [=](Side& side) {
                           std::vector<float> inv, mean;
                           for (std::int64_t t = 0; t < T; ++t)
                             inv.push_back(0.75f + 0.5f * float(t % 3)), mean.push_back(float(t % 5) * 0.1f);
                           const Tensor dx = side.gaussian(shape, 5, dtype), dw = side.gaussian({D}, 6), db = side.gaussian({D}, 7);
                           ops::layernorm_backward(side.stream(), {.dy = side.gaussian(shape, 1, dtype),
                                                                   .x = side.gaussian(shape, 2, dtype),
                                                                   .w = side.gaussian({D}, 3),
                                                                   .mean = side.from(mean, {T}),
                                                                   .inv_std = side.from(inv, {T}),
                                                                   .dx = dx,
                                                                   .dw = dw,
                                                                   .db = db,
                                                                   .accumulate = accumulate});
                           side.result("dx", dx, within(row)), side.result("dw", dw, within(column)), side.result("db", db, within(column));
                         }});
      }
  return cases;
}
const Cases registered(make);

}  // namespace
}  // namespace octet::parity
