#include "octet/ops/swiglu/swiglu.hpp"

#include "octet/ops/quantize/quantize.hpp"
#include "tests/cuda/sinks.hpp"

// One formula in one order of operations: the same bits, also of the codes.

namespace octet::parity {
namespace {

std::vector<Case> make() {
  std::vector<Case> cases;
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
    for (const Shape shape : {Shape{0, 8}, Shape{1, 1}, Shape{3, 7}, Shape{5, 40}, Shape{130, 264}, Shape{128, 128}, Shape{300, 896},
                              Shape{7, 64}, Shape{130, 288}}) {
      const Shape wide = {shape[0], 2 * shape[1]};
      cases.push_back({format("swiglu_forward {} {}", dtype, shape), [=](Side& side) {
                         const Tensor x = side.gaussian(wide, 1, dtype, 4);
                         each_sink(side, shape, dtype, [&](Stream& stream, ops::Sink& y) { ops::swiglu_forward(stream, x, y); });
                       }});
      cases.push_back({format("swiglu_backward {} {}", dtype, shape), [=](Side& side) {
                         const Tensor x = side.gaussian(wide, 1, dtype, 4), dy = side.gaussian(shape, 2, dtype);
                         each_sink(side, wide, dtype, [&](Stream& stream, ops::Sink& dx) { ops::swiglu_backward(stream, dy, x, dx); });
                       }});
      if (shape[1] % ops::saved_block != 0 || shape.count() == 0) continue;
      const Shape coded = wide;
      cases.push_back({format("swiglu of codes {} {}", dtype, shape), [=](Side& side) {
                         const Tensor x = side.gaussian(coded, 1, dtype, 4), dy = side.gaussian(shape, 2, dtype);
                         ops::Sink saved = ops::saved_sink(side.stream(), x, ops::saved_spec(), Lifetime::run);
                         ops::quantize(side.stream(), x, saved);
                         const ops::Saved codes(saved.codes.rows, dtype);
                         each_sink(side, shape, dtype, [&](Stream& stream, ops::Sink& y) { ops::swiglu_forward(stream, codes, y); });
                         each_sink(side, coded, dtype, [&](Stream& stream, ops::Sink& dx) { ops::swiglu_backward(stream, dy, codes, dx); });
                       }});
      cases.push_back({format("swiglu_forward saving codes {} {}", dtype, shape), [=](Side& side) {
                         const Tensor x = side.gaussian(wide, 1, dtype, 4), odd = side.from(odd_values(wide.count()), wide, dtype);
                         const auto save = [&](Stream& stream, const Tensor& from, ops::Sink& y) {
                           ops::Sink saved = ops::saved_sink(stream, from, ops::saved_spec(), Lifetime::run);
                           ops::swiglu_forward(stream, from, y, &saved);
                           const Tensor values = stream.empty(wide, dtype, Lifetime::run);  // and so the scales
                           ops::dequantize(stream, saved.codes.rows, values);
                           side.result("codes", saved.codes.rows.codes, same_bits()), side.result("saved values", values, same_bits());
                         };
                         each_sink(side, shape, dtype, [&](Stream& stream, ops::Sink& y) { save(stream, x, y); });
                         for (const Kind& kind : kinds(dtype)) {
                           SinkOnSide y(side, kind, shape, dtype, {.count = false});
                           save(side.stream(), odd, y.sink);
                         }
                       }});
    }
  return cases;
}
const Cases registered(make);

}  // namespace
}  // namespace octet::parity
