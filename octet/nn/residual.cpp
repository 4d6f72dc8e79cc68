#include "octet/nn/residual.hpp"

#include "octet/ops/quantize/quantize.hpp"

namespace octet::nn {

ResidualQuantizer::ResidualQuantizer(bool on, std::int64_t width, scaling::Precision& precision) {
  if (on) plan_ = precision.plan({.path = "residual", .out = width, .in = width});
}

bool ResidualQuantizer::apply(Stream& stream, const Tensor& x, const scaling::Pass& pass) const {
  if (plan_.x == nullptr) return false;
  const ops::QuantizeSpec spec = plan_.x->spec(pass);
  if (!spec.quantizes()) return false;
  const Scope scope(stream);
  ops::Sink sink = ops::make_sink(stream, spec, {.shape = x.shape, .dtype = x.dtype, .plain = x});
  ops::quantize(stream, x, sink);
  ops::dequantize(stream, sink.codes.rows, x);
  return true;
}

}  // namespace octet::nn
