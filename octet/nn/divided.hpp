#pragma once

#include "octet/nn/joined_scales.hpp"
#include "octet/nn/linear.hpp"

namespace octet::nn {

// Operands of tensors [T, C] of which each member of a partition has other columns, such as the output of its own heads. A scale per tensor
// that follows from the data is that of the maximum over members, so codes and scales are those columns of the ones that one member makes.
// Other scales are those of the own columns.

/// Encodes sink.plain, which is there, into the sink's codes.
void encode_divided(Stream&, Partition&, const ops::Sink&);

/// fill(sink) by an op that produces the own columns.
template <class Fill>
void fill_divided(Stream& stream, Partition& p, ops::Sink& sink, const Fill& fill) {
  if (!finds_scale_together(p, sink.spec)) return fill(sink);
  ops::Sink values = ops::make_sink(stream, {.format = sink.dtype}, {.shape = sink.shape, .dtype = sink.dtype, .plain = sink.plain});
  fill(values);
  encode_divided(stream, p, sink);
}

/// As Linear::quantize_input(), rebuild_input() and quantize_gradient().
QTensor quantize_divided_input(Stream&, const Linear&, Partition&, const Tensor& x, const scaling::Pass&, bool keep);
Quantized rebuild_divided_input(Stream&, const Linear&, Partition&, const Tensor& x, const scaling::Pass&);
ops::Sink quantize_divided_gradient(Stream&, const Linear&, Partition&, const Tensor& dy, const scaling::Pass&);

}  // namespace octet::nn
