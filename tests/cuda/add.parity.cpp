#include "octet/ops/add/add.hpp"
#include "tests/cuda/parity.hpp"

namespace octet::parity {
namespace {

std::vector<Case> make() {
  std::vector<Case> cases;
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
    for (const Shape shape : {Shape{0, 8}, Shape{1, 1}, Shape{3, 7}, Shape{128, 896}, Shape{1000, 123}})
      cases.push_back({format("add {} {}", dtype, shape), [=](Side& side) {
                         const Tensor a = side.gaussian(shape, 1, dtype), b = side.gaussian(shape, 2, dtype),
                                      out = side.poisoned(shape, dtype);
                         ops::add(side.stream(), a, b, out);
                         side.result("out", out, same_bits());
                       }});
  return cases;
}
const Cases registered(make);

}  // namespace
}  // namespace octet::parity
