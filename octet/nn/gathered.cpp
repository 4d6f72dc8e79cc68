#include "octet/nn/gathered.hpp"

#include "octet/ops/quantize/from_codes.hpp"
#include "octet/ops/quantize/quantize.hpp"

namespace octet::nn {
namespace {

Shape shape_of_all(const Partition& p, const Tensor& own) { return {own.shape[0] * p.members(), own.shape[1]}; }

// Values are gathered, then encoded.
Gather gather_values(Stream& stream, const LinearSite& layer, Partition& p, const OperandRequest& own, Region region,
                     const scaling::Pass& pass) {
  OperandRequest all = own;
  // One member's scratch operands are of its own rows: their products come before these change.
  if (region.lifetime == Lifetime::scratch) all.values = p.all_rows(stream, own.values, Category::activations);
  else all.values = stream.empty(shape_of_all(p, own.values), own.values.dtype, region, Category::activations);
  const ops::Sink sink = layer.operand(stream, all, pass);
  return {sink, [&p, own = own.values, all = all.values, sink](Stream& queue) {
            ops::Sink operands = sink;
            p.gather(queue, own, all);
            ops::quantize(queue, all, operands);
          }};
}

// The own rows are encoded by the scale of all rows, and their codes are gathered.
void fill_codes(Stream& stream, Partition& p, const Tensor& own, const ops::QuantizeSpec& spec, const Quantized& all) {
  const StoredSlice slice{Stored::plain(own.reshaped({own.count()})), all.codes.shape, own.count() * p.member()};
  const Scope scope(stream);
  const Tensor scale = spec.scale_known() ? spec.scale : stream.empty({1}, DType::f32);
  if (!spec.scale_known()) find_scale(stream, p, {slice, spec, scale, all.descales});
  const Tensor own_codes = all.codes.rows(own.shape[0] * p.member(), own.shape[0]);
  ops::quantize_slice(stream, slice, spec, scale, own_codes.reshaped({own.count()}));
  p.gather(stream, own_codes, all.codes);
}

// The descale lives as long as the operands.
Gather gather_codes(Stream& stream, Partition& p, const Tensor& own, const ops::QuantizeSpec& spec, ops::SinkRequest want) {
  const Region longest = want.cols ? want.cols_region : want.rows_region;
  want.for_gemm = true;
  want.shape = shape_of_all(p, own), want.dtype = own.dtype;
  const Region of_codes = ops::columns_view_codes(stream, want) ? longest : Lifetime::scratch;
  want.codes = {.codes = stream.empty(want.shape, spec.format, of_codes, Category::activations),
                .descales = spec.scale_known() ? spec.descale : stream.empty({1}, DType::f32, longest, Category::activations),
                .block = spec.rows,
                .power_of_two = spec.rule != ScaleRule::quotient};
  const ops::Sink sink = ops::make_sink(stream, spec, want);
  return {sink, [&p, own, spec, codes = want.codes, sink](Stream& queue) {
            ops::Sink operands = sink;
            fill_codes(queue, p, own, spec, codes);
            ops::fill_from_codes(queue, codes, operands);
          }};
}

}  // namespace

bool gathers_codes(const LinearSite& layer, const OperandRequest& request, const ops::QuantizeSpec& spec, const Shape& whole) {
  return ops::can_quantize_slices(spec, whole) && spec.rows.whole_tensor() && !layer.reads_values(request);
}

Tensor lasting(Stream& stream, const Tensor& x, Region region) {
  if (region.lifetime == Lifetime::scratch) return x;
  const Tensor out = stream.empty(x.shape, x.dtype, region, Category::activations);
  copy(stream, x, out);
  return out;
}

Gather gather_operands(Stream& stream, const LinearSite& layer, Partition& p, const OperandRequest& own, const scaling::Pass& pass) {
  const ops::QuantizeSpec spec = layer.spec(own.tensor, pass);
  if (p.divides() && gathers_codes(layer, own, spec, shape_of_all(p, own.values)))
    return gather_codes(
        stream, p, own.values, spec,
        {.rows = own.rows, .cols = own.cols, .cols_region = own.region(pass), .cols_left = own.tensor == Operand::gradient});
  return gather_values(stream, layer, p, own, spec.quantizes() ? Region(Lifetime::scratch) : own.region(pass), pass);
}

void backward_and_reduce(Stream& stream, Linear& layer, Partition& p, const ops::Sink& dy, const Linear::Saved& saved, const Tensor& dx,
                         const scaling::Pass& pass) {
  const Scope scope(stream);
  const Tensor all = p.all_rows(stream, dx);
  if (layer.is_adapted()) p.beside().join(stream);  // an adapter reads the layer's input
  layer.backward_input(stream, dy, saved, all);
  p.beside().join(stream);
  const SideWork::Piece reduce = p.beside().begin(stream, [&p, all, dx](Stream& queue) { p.reduce(queue, all, dx); });
  p.beside().pause();
  layer.backward_weight(stream, dy, saved, pass.later);
  stream.observe(layer.path(), "dx", all);
  p.beside().join(stream, reduce);
}

}  // namespace octet::nn
