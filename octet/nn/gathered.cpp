#include "octet/nn/gathered.hpp"

#include "octet/nn/divided.hpp"
#include "octet/ops/quantize/from_codes.hpp"
#include "octet/ops/quantize/slice.hpp"

namespace octet::nn {
namespace {

Shape all_rows(const Partition& p, const Tensor& own) { return {own.shape[0] * p.members(), own.shape[1]}; }

Tensor gathered_values(Stream& stream, Partition& p, const Tensor& own, Region region) {
  const Tensor all = stream.empty(all_rows(p, own), own.dtype, region, Category::activations);
  p.gather(stream, own, all);
  return all;
}

// All rows as codes, encoded by the scale of all of them. Regions of the codes and of the descale, which lives as long as the operands.
Quantized gathered_codes(Stream& stream, Partition& p, const Tensor& own, const ops::QuantizeSpec& spec, Region of_codes,
                         Region of_descale) {
  const Shape all = all_rows(p, own);
  const StoredSlice slice{Stored::plain(own.reshaped({own.count()})), all, own.count() * p.member()};
  const Tensor codes = stream.empty(all, spec.format, of_codes, Category::activations);
  const Tensor descale = spec.scale_known() ? spec.descale : stream.empty({1}, DType::f32, of_descale, Category::activations);
  const Scope scope(stream);
  const Tensor scale = spec.scale_known() ? spec.scale : stream.empty({1}, DType::f32);
  if (!spec.scale_known()) find_scale(stream, p, slice, spec, scale, descale);
  const Tensor own_codes = codes.rows(own.shape[0] * p.member(), own.shape[0]);
  ops::quantize_slice(stream, slice, spec, scale, own_codes.reshaped({own.count()}));
  p.gather(stream, own_codes, codes);
  return {.codes = codes, .descales = descale, .block = spec.rows, .power_of_two = spec.rule != ScaleRule::quotient};
}

ops::Sink sink_of_codes(Stream& stream, Partition& p, const Tensor& own, const ops::QuantizeSpec& spec, ops::SinkRequest want) {
  const Region longest = want.cols ? want.cols_region : want.rows_region;
  want.for_gemm = true;
  want.codes = gathered_codes(stream, p, own, spec, ops::columns_view_codes(stream, want) ? longest : Lifetime::scratch, longest);
  want.shape = all_rows(p, own), want.dtype = own.dtype;
  ops::Sink sink = ops::make_sink(stream, spec, want);
  ops::fill_from_codes(stream, want.codes, sink);
  return sink;
}

}  // namespace

bool gathers_codes(const ops::QuantizeSpec& spec, const Shape& whole) {
  return ops::can_quantize_slices(spec, whole) && spec.rows.whole_tensor();
}

Tensor lasting(Stream& stream, const Tensor& x, Region region) {
  if (region.lifetime == Lifetime::scratch) return x;
  const Tensor out = stream.empty(x.shape, x.dtype, region, Category::activations);
  copy(stream, x, out);
  return out;
}

QTensor gather_input(Stream& stream, const Linear& layer, Partition& p, const Tensor& own, const scaling::Pass& pass, bool keep) {
  const ops::QuantizeSpec spec = layer.input_spec(pass);
  const Region region = keep ? pass.forward_operands() : Region(Lifetime::scratch);
  if (!spec.quantizes()) return layer.quantize_input(stream, gathered_values(stream, p, own, region), pass, keep);
  if (!gathers_codes(spec, all_rows(p, own)))
    return layer.quantize_input(stream, gathered_values(stream, p, own, Lifetime::scratch), pass, keep);
  return sink_of_codes(stream, p, own, spec, {.cols = keep, .cols_region = region}).codes;
}

Quantized gather_rebuilt_input(Stream& stream, const Linear& layer, Partition& p, const Tensor& own, const scaling::Pass& pass) {
  const ops::QuantizeSpec spec = layer.input_spec(pass);
  if (!spec.quantizes()) return layer.rebuild_input(stream, gathered_values(stream, p, own, pass.forward_operands()), pass);
  if (!gathers_codes(spec, all_rows(p, own))) return layer.rebuild_input(stream, gathered_values(stream, p, own, Lifetime::scratch), pass);
  return sink_of_codes(stream, p, own, spec, {.rows = false, .cols = true, .cols_region = pass.forward_operands()}).codes.cols;
}

ops::Sink gather_gradient(Stream& stream, const Linear& layer, Partition& p, const Tensor& own, const scaling::Pass& pass) {
  const Region region = layer.gradient_region(pass);
  if (!p.divides()) return layer.quantize_gradient(stream, lasting(stream, own, region), pass);
  const ops::QuantizeSpec spec = layer.gradient_spec(pass);
  if (!gathers_codes(spec, all_rows(p, own)) || layer.has_bias())
    return layer.quantize_gradient(stream, gathered_values(stream, p, own, region), pass);
  return sink_of_codes(stream, p, own, spec, {.cols = true, .cols_region = pass.backward_operands(), .cols_left = true});
}

}  // namespace octet::nn
