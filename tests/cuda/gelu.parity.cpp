#include "octet/ops/gelu/gelu.hpp"
#include "tests/cuda/sinks.hpp"

// One formula in one order of operations: the same bits, also of the codes.

namespace octet::parity {
namespace {

std::vector<Case> make() {
  std::vector<Case> cases;
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
    for (const Shape shape : {Shape{0, 8}, Shape{1, 1}, Shape{3, 7}, Shape{5, 40}, Shape{130, 264}, Shape{300, 896}}) {
      cases.push_back({format("gelu_forward {} {}", dtype, shape), [=](Side& side) {
                         const Tensor x = side.gaussian(shape, 1, dtype, 4);
                         each_sink(side, shape, dtype, [&](Stream& stream, ops::Sink& y) { ops::gelu_forward(stream, x, y); });
                       }});
      cases.push_back({format("gelu_backward {} {}", dtype, shape), [=](Side& side) {
                         const Tensor x = side.gaussian(shape, 1, dtype, 4), dy = side.gaussian(shape, 2, dtype);
                         each_sink(side, shape, dtype, [&](Stream& stream, ops::Sink& dx) { ops::gelu_backward(stream, dy, x, dx); });
                       }});
    }
  return cases;
}
const Cases registered(make);

}  // namespace
}  // namespace octet::parity
