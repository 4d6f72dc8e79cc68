#include "octet/nn/operands.hpp"

#include "octet/ops/quantize/quantize.hpp"

namespace octet::nn {

namespace {

// For its maximum alone: rows without values fill it up to a shape whose maxima are found.
StoredSlice slice_of(const Tensor& x) {
  constexpr std::int64_t rows = 16;
  return {Stored::plain(x.reshaped({x.count()})), {round_up(x.shape[0], rows), x.shape[1]}, 0};
}

}  // namespace

void encode_divided(Stream& stream, Partition& p, const ops::Sink& sink) {
  ops::Sink known = sink;
  const Scope scope(stream);
  if (finds_scale_together(p, sink.spec)) {
    const Quantized& operand = sink.codes.rows ? sink.codes.rows : sink.codes.cols;
    known.spec.scale = stream.empty({1}, DType::f32);
    known.spec.descale = operand.descales ? operand.descales : stream.empty({1}, DType::f32);  // decoded codes may have it in them
    find_scale(stream, p, {slice_of(sink.plain), sink.spec, known.spec.scale, known.spec.descale});
  }
  ops::quantize(stream, sink.plain, known);
}

ops::Sink quantized(Stream& stream, const LinearSite& layer, const OperandRequest& request, const scaling::Pass& pass, Partition& p) {
  const ops::Sink sink = layer.operand(stream, request, pass);
  encode_divided(stream, p, sink);
  return sink;
}

}  // namespace octet::nn
