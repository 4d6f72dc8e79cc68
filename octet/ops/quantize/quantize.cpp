#include "octet/ops/quantize/quantize.kernels.hpp"
#include "octet/ops/quantize/stack.hpp"

namespace octet::ops {
namespace {

bool is_wide(DType t) { return t == DType::f32 || t == DType::bf16; }

}  // namespace

void count_quantized(Stream& stream, const Tensor& x, const Sink& sink) {
  const double codes = double(sink.codes.rows.codes.bytes()) + (sink.codes.one_matrix() ? 0.0 : double(sink.codes.cols.codes.bytes()));
  const double reads = sink.spec.local(bool(sink.codes.cols)) ? 1 : 2;
  stream.count({.ops = 1, .bytes = reads * double(x.bytes()) + codes});
}

void quantize(Stream& stream, const Tensor& x, Sink& sink) {
  check(x.shape == sink.shape && is_activation(x.dtype), "quantize: wants {} of f32, bf16 or f16, got {} {}", sink.shape, x.shape, x.dtype);
  if (!sink.spec.quantizes()) {
    if (x.data == sink.plain.data) return;
    check(bool(sink.plain) && is_activation(sink.plain.dtype), "quantize: an unquantized sink needs plain storage of f32, bf16 or f16");
    stream.count({.ops = 1, .bytes = double(x.bytes() + sink.plain.bytes())});
    OCTET_LAUNCH(stream, decode_operand, Quantized{.codes = x}, false, sink.plain);
    return;
  }
  if (is_stack(sink.spec)) return quantize_stack(stream, Stored::plain(x), sink);
  check(is_wide(x.dtype) && (x.dtype == sink.dtype || x.dtype == DType::f32 || sink.dtype == DType::f32), "quantize: no way from {} to {}",
        x.dtype, sink.dtype);
  count_quantized(stream, x, sink);
  OCTET_LAUNCH(stream, quantize, x, sink, Tensor{});
}

namespace {

// A variable with one scale per tensor as an operand, which is decoded alike.
Quantized operand_of(const Stored& x) { return {.codes = x.codes, .descales = x.tensor_descale(), .power_of_two = true}; }

void decode(Stream& stream, const Stored& x, const Tensor& to) {
  stream.count({.ops = 1, .bytes = double(x.codes.bytes() + to.bytes())});
  OCTET_LAUNCH(stream, decode_operand, operand_of(x), true, to);
}

}  // namespace

void quantize(Stream& stream, const Stored& x, Sink& sink) {
  if (!x.scales) return quantize(stream, x.values(), sink);
  check(scales_tensor(x.storage) && x.shape() == sink.shape, "quantize: wants {} of f32, bf16, f16 or e4m3_tensor, got {} {}", sink.shape,
        x.storage, x.shape());
  if (is_stack(sink.spec)) return quantize_stack(stream, x, sink);
  const bool plain = !sink.spec.quantizes(), halves = x.storage == Storage::f16;
  if (plain && (halves || is_wide(sink.plain.dtype))) return decode(stream, x, sink.plain);
  check(plain || sink.dtype == DType::f32, "quantize: values of {} have a sink of f32, got {}", x.storage, sink.dtype);
  if (!halves) {
    const Scope scope(stream);
    const Tensor decoded = stream.empty(x.shape(), DType::f32);
    decode(stream, x, decoded);
    return quantize(stream, decoded, sink);
  }
  count_quantized(stream, x.codes, sink);
  OCTET_LAUNCH(stream, quantize, x.codes, sink, x.tensor_descale());
}

void dequantize(Stream& stream, const Quantized& q, const Tensor& x) {
  check(x.shape == Shape{q.rows(), q.cols()} && is_wide(x.dtype) && !q.transposed, "dequantize: wants {} of f32 or bf16, got {} {}",
        q.codes.shape, x.shape, x.dtype);
  stream.count({.ops = 1, .bytes = double(q.codes.bytes() + x.bytes())});
  OCTET_LAUNCH(stream, decode_operand, q, true, x);
}

}  // namespace octet::ops
