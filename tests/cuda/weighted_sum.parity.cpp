#include "octet/ops/weighted_sum/weighted_sum.hpp"

#include "octet/ops/adamw/adamw.hpp"
#include "tests/cuda/parity.hpp"

namespace octet::parity {
namespace {

Case weighted_sum(DType in, DType out, Shape shape, float skip) {
  return {format("weighted_sum {} to {} {} skip {}", in, out, shape, skip), [=](Side& side) {
            const ops::AdamWStep values{.gradient_scale = 0.3f, .skip = skip};
            const Tensor step = side.stream().zeros({ops::adamw_step_floats}, DType::f32, Lifetime::run);
            upload(side.stream(), &values, step);
            const Tensor sum = side.poisoned(shape, out);
            ops::weighted_sum(side.stream(), {.a = 0.95f,
                                              .x = side.gaussian(shape, 1, in),
                                              .b = 0.05f,
                                              .y = side.gaussian(shape, 2, in),
                                              .out = sum,
                                              .squares = side.raw(std::vector<double>{7}, {1}),
                                              .step = step});
            side.result("sum", sum, same_bits());
          }};
}

std::vector<Case> make() {
  std::vector<Case> cases;
  for (const DType in : {DType::f32, DType::bf16, DType::f16})
    for (const DType out : {DType::f32, DType::bf16})
      for (const Shape shape : {Shape{0, 8}, Shape{1, 1}, Shape{3, 7}, Shape{128, 896}, Shape{1000, 123}})
        for (const float skip : {0.0f, 1.0f}) cases.push_back(weighted_sum(in, out, shape, skip));
  return cases;
}
const Cases registered(make);

}  // namespace
}  // namespace octet::parity
