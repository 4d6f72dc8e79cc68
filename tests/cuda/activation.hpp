#pragma once

#include "octet/ops/quantize/quantize.hpp"
#include "octet/ops/quantize/saved.hpp"
#include "tests/cuda/sinks.hpp"

namespace octet::parity {

/// The cases of an activation function y = f(x), y: [rows, cols], x: [rows, inputs * cols], that reads x as values or as saved codes:
///   forward(stream, x, y, codes)   codes: null, or a saved_sink() of x
///   backward(stream, dy, x, dx)
template <class Forward, class Backward>
std::vector<Case> activation_cases(const std::string& name, const std::vector<Shape>& shapes, int inputs, Forward forward,
                                   Backward backward) {
  std::vector<Case> cases;
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
    for (const Shape shape : shapes) {
      const Shape wide = {shape[0], inputs * shape[1]};
      cases.push_back({format("{}_forward {} {}", name, dtype, shape), [=](Side& side) {
                         const ops::Saved x = side.gaussian(wide, 1, dtype, 4);
                         each_sink(side, shape, dtype, [&](Stream& stream, ops::Sink& y) { forward(stream, x, y, nullptr); });
                       }});
      cases.push_back({format("{}_backward {} {}", name, dtype, shape), [=](Side& side) {
                         const ops::Saved x = side.gaussian(wide, 1, dtype, 4);
                         const Tensor dy = side.gaussian(shape, 2, dtype);
                         each_sink(side, wide, dtype, [&](Stream& stream, ops::Sink& dx) { backward(stream, dy, x, dx); });
                       }});
      if (dtype == DType::f16 || shape[1] % ops::saved_block != 0 || shape.count() == 0) continue;
      cases.push_back({format("{} of codes {} {}", name, dtype, shape), [=](Side& side) {
                         const Tensor x = side.gaussian(wide, 1, dtype, 4), dy = side.gaussian(shape, 2, dtype);
                         ops::Sink saved = ops::saved_sink(side.stream(), x, ops::saved_spec(), Lifetime::run);
                         ops::quantize(side.stream(), x, saved);
                         const ops::Saved codes(saved.codes.rows, dtype);
                         each_sink(side, shape, dtype, [&](Stream& stream, ops::Sink& y) { forward(stream, codes, y, nullptr); });
                         each_sink(side, wide, dtype, [&](Stream& stream, ops::Sink& dx) { backward(stream, dy, codes, dx); });
                       }});
      cases.push_back({format("{}_forward saving codes {} {}", name, dtype, shape), [=](Side& side) {
                         const Tensor x = side.gaussian(wide, 1, dtype, 4), odd = side.from(odd_values(wide.count()), wide, dtype);
                         const auto save = [&](Stream& stream, const Tensor& from, ops::Sink& y) {
                           ops::Sink saved = ops::saved_sink(stream, from, ops::saved_spec(), Lifetime::run);
                           forward(stream, from, y, &saved);
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

}  // namespace octet::parity
