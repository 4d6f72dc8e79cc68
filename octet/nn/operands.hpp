#pragma once

#include "octet/nn/joined_scales.hpp"
#include "octet/nn/linear.hpp"
#include "octet/ops/quantize/plain_sink.hpp"

namespace octet::nn {

// The sinks of LinearSite::operand() are filled here. Where each member of a partition has other columns of the tensor, such as the output
// of its own heads, a scale per tensor that follows from the data is that of the maximum over members. So codes and scales are those
// columns of the ones that one member makes. Other scales are those of the own columns.

/// Encodes sink.plain, which is there, into the sink's codes.
void encode_divided(Stream&, Partition&, const ops::Sink&);

/// fill(sink) by an op that produces the own columns.
template <class Fill>
void fill_divided(Stream& stream, Partition& p, ops::Sink& sink, const Fill& fill) {
  if (!finds_scale_together(p, sink.spec)) return fill(sink);
  ops::Sink values = ops::plain_sink(sink.plain);
  fill(values);
  encode_divided(stream, p, sink);
}

/// The operands of request.values. Where the layer is not quantized, they are views of these values, which must live as long:
/// OperandRequest::region(). With a partition, the values are the own columns.
ops::Sink quantized(Stream&, const LinearSite&, const OperandRequest&, const scaling::Pass&, Partition& = whole_partition());

}  // namespace octet::nn
