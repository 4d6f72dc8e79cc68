#include "octet/ops/quantize/from_codes.kernels.hpp"
#include "octet/ops/quantize/quantize.kernels.hpp"

namespace octet::ops {
namespace {

constexpr std::int64_t least_side = 16;

bool same_memory(const Quantized& a, const Quantized& b) { return a.codes.data == b.codes.data; }

void decode(Stream& stream, const Quantized& codes, const QuantizeSpec& spec, const Tensor& to) {
  stream.count({.ops = 1, .bytes = double(codes.codes.bytes() + to.bytes())});
  OCTET_LAUNCH(stream, decode_operand, codes, spec.decodes_with_descale(codes.block), to);
}

// Descales of the transposed orientation, in scratch: those of a tensor, or of the matrices of a stack, are the same.
Tensor transposed_descales(Stream& stream, const Quantized& q) {
  if (q.block.whole_matrices()) return q.descales;
  return stream.empty(descale_shape(q.block, q.descales.dtype, q.cols(), q.rows()), q.descales.dtype);
}

void fill_columns(Stream& stream, const Quantized& codes, const QuantizeSpec& spec, const Quantized& cols) {
  if (!cols.decoded) {
    if (!cols.transposed) return transpose_codes(stream, codes, cols);
    // The codes themselves, in the order of the rows: only the table of descales has another.
    if (!codes.block.whole_matrices())
      OCTET_LAUNCH(stream, transpose_descales, ceil_div(codes.rows(), codes.block.rows), ceil_div(codes.cols(), codes.block.cols),
                   codes.descales, cols.descales);
    return;
  }
  if (cols.transposed) return decode(stream, codes, spec, cols.codes);
  const Scope scope(stream);
  Quantized turned = codes;
  turned.block = codes.block.transposed();
  turned.codes = stream.empty(cols.codes.shape, codes.codes.dtype);
  turned.descales = transposed_descales(stream, codes);
  transpose_codes(stream, codes, turned);
  decode(stream, turned, spec, cols.codes);
}

}  // namespace

void fill_from_codes(Stream& stream, const Quantized& codes, Sink& sink) {
  check(sink.spec.same_codes() && is_fp8(codes.codes.dtype) && codes.codes.dtype == sink.spec.format && codes.codes.shape == sink.shape &&
            codes.block == sink.spec.rows && !codes.transposed,
        "fill_from_codes: {} {} in blocks of {} are no codes of a sink of {} {} in blocks of {}", codes.codes.dtype, codes.codes.shape,
        codes.block, sink.spec.format, sink.shape, sink.spec.rows);
  const QTensor& to = sink.codes;
  if (to.rows && !same_memory(to.rows, codes)) decode(stream, codes, sink.spec, to.rows.codes);
  const bool decoded_once = to.one_matrix() && to.cols.decoded;
  if (to.cols && !decoded_once) fill_columns(stream, codes, sink.spec, to.cols);
}

void transpose_codes(Stream& stream, const Quantized& from, const Quantized& to) {
  const std::int64_t rows = from.rows(), cols = from.cols();
  check(is_fp8(from.codes.dtype) && to.codes.dtype == from.codes.dtype && to.codes.shape == Shape{cols, rows} && !from.transposed &&
            !to.transposed && rows % least_side == 0 && cols % least_side == 0,
        "transpose_codes: wants [R, C] and [C, R] of one 8-bit format, multiples of {}, got {} {} and {} {}", least_side, from.codes.dtype,
        from.codes.shape, to.codes.dtype, to.codes.shape);
  const bool one = from.block.whole_matrices();
  check(to.block == from.block.transposed() && (one || from.block == ScaleBlock{128, 128}) && from.descales.dtype == DType::f32 &&
            to.descales.dtype == DType::f32 && to.descales.shape == descale_shape(to.block, DType::f32, cols, rows),
        "transpose_codes: wants f32 descales per tensor, matrix or 128x128 of both, got {} of {} and {} of {}", from.descales.shape,
        from.block, to.descales.shape, to.block);
  stream.count({.ops = 1, .bytes = double(from.codes.bytes() + to.codes.bytes())});
  OCTET_LAUNCH(stream, transpose_bytes, from.codes, to.codes);
  if (!one) OCTET_LAUNCH(stream, transpose_descales, ceil_div(rows, 128), ceil_div(cols, 128), from.descales, to.descales);
  else if (to.descales.data != from.descales.data) copy(stream, from.descales, to.descales);
}

}  // namespace octet::ops
