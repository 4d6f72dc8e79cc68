#include "octet/ops/quantize/stack.hpp"

#include <cstring>

#include "octet/ops/quantize/from_codes.kernels.hpp"
#include "octet/ops/quantize/quantize.hpp"
#include "octet/ops/quantize/slice.kernels.hpp"

namespace octet::ops {
namespace {

constexpr std::int64_t least_side = 16;  // of matrices on a GPU: packs of values lie in one row

// Rows of a stored variable, all of whose values have one scale at most.
Stored rows_of(const Stored& x, std::int64_t begin, std::int64_t n) {
  Stored out = x;
  out.codes = x.codes.rows(begin, n);
  return out;
}

std::int64_t matrices_of(const Sink& sink) {
  const Quantized& q = sink.codes.rows ? sink.codes.rows : sink.codes.cols;
  return sink.shape[0] / (sink.codes.rows ? q.block.rows : q.block.cols);
}

// Matrix e of an operand as one by itself. Columns that are K-contiguous are not: they get memory of their own.
Quantized one_of(Stream& stream, const Quantized& q, std::int64_t e, std::int64_t N, bool cols) {
  if (!q) return {};
  Quantized out = q;
  out.block = {};
  if (q.descales) out.descales = q.descales.rows(e, 1);
  if (cols && !q.transposed) out.codes = stream.empty({q.rows(), N}, q.codes.dtype);
  else out.codes = q.codes.rows(e * N, N);
  return out;
}

void put_columns(const Quantized& from, const Quantized& to, std::int64_t e) {
  const std::size_t size = size_of(to.codes.dtype), row = std::size_t(from.codes.shape[1]) * size,
                    step = std::size_t(to.codes.shape[1]) * size;
  for (std::int64_t k = 0; k < from.codes.shape[0]; ++k)
    std::memcpy(to.codes.u8() + std::size_t(k) * step + std::size_t(e) * row, from.codes.u8() + std::size_t(k) * row, row);
}

// On a CPU matrix by matrix: a launch costs nothing there.
void quantize_each(Stream& stream, const Stored& x, const Sink& sink, std::int64_t matrices) {
  const std::int64_t N = sink.shape[0] / matrices;
  for (std::int64_t e = 0; e < matrices; ++e) {
    const Scope scope(stream);
    Sink one{.shape = {N, sink.shape[1]}, .dtype = sink.dtype, .spec = sink.spec};
    one.codes.rows = one_of(stream, sink.codes.rows, e, N, false), one.codes.cols = one_of(stream, sink.codes.cols, e, N, true);
    quantize(stream, rows_of(x, e * N, N), one);
    if (stream.device() == Device::cpu && sink.codes.cols && !sink.codes.cols.transposed) put_columns(one.codes.cols, sink.codes.cols, e);
  }
}

// On a GPU all at once: maxima, scales, codes of rows, and their transpose.
void quantize_together(Stream& stream, const Stored& x, const Sink& sink, std::int64_t matrices) {
  const Scope scope(stream);
  const QTensor& to = sink.codes;
  const ScaleBlock block{int(sink.shape[0] / matrices), 0};
  const StoredSlice all{.stored = x, .whole = sink.shape};
  const Tensor scales = stream.empty({matrices}, DType::f32), codes = to.rows ? to.rows.codes : stream.empty(sink.shape, sink.spec.format);
  slice_maxima(stream, all, block, scales);
  scales_of_maxima(stream, sink.spec, sink.dtype, scales, scales, to.rows ? to.rows.descales : to.cols.descales);
  quantize_slice_in_blocks(stream, all, sink.spec, {scales, block, descale_stride(block, DType::f32, sink.shape[0], sink.shape[1])}, codes);
  if (to.cols) OCTET_LAUNCH(stream, transpose_bytes, codes, to.cols.codes);
}

}  // namespace

bool scales_per_matrix(const QuantizeSpec& spec) {
  return spec.quantizes() && !spec.scale_known() && spec.rows.whole_tensor() && spec.cols.whole_tensor() &&
         spec.descale_dtype() == DType::f32;
}

Sink make_stack_sink(Stream& stream, const QuantizeSpec& spec, const SinkRequest& want, std::int64_t matrices) {
  check(scales_per_matrix(spec), "stack: wants a scale per tensor from the data, got blocks {} and {}", spec.rows, spec.cols);
  check(want.shape.rank == 2 && matrices > 0 && want.shape[0] % matrices == 0 && (want.rows || want.cols),
        "stack: wants [{} N, K] in some orientation, got {}", matrices, want.shape);
  const std::int64_t N = want.shape[0] / matrices;
  check(stream.target().device == Device::cpu || (N % least_side == 0 && want.shape[1] % least_side == 0),
        "stack: matrices must have sides that are multiples of {}, got [{}, {}]", least_side, N, want.shape[1]);
  const Tensor descales = stream.empty({matrices}, DType::f32, want.cols ? want.cols_region : want.rows_region, want.category);
  QuantizeSpec known = spec;  // no values are stored for a second pass: the stack itself is read again
  known.scale = known.descale = descales.rows(0, 1);
  Sink sink = make_sink(stream, known, want);
  sink.spec = spec;
  for (Quantized* q : {&sink.codes.rows, &sink.codes.cols})
    if (q->descales) q->descales = descales;
  if (sink.codes.rows) sink.codes.rows.block = {int(N), 0};
  if (sink.codes.cols) sink.codes.cols.block = {0, int(N)};
  return sink;
}

void quantize_stack(Stream& stream, const Stored& x, Sink& sink) {
  check(scales_per_matrix(sink.spec) && (sink.codes.rows || sink.codes.cols), "stack: wants a sink of make_stack_sink()");
  check(x.shape() == sink.shape && !scales_blocks(x.storage), "stack: wants {} of f32, bf16, f16 or e4m3_tensor, got {} {}", sink.shape,
        x.storage, x.shape());
  if (sink.shape.count() == 0) return;
  const std::int64_t matrices = matrices_of(sink);
  if (stream.target().device == Device::cpu) quantize_each(stream, x, sink, matrices);
  else quantize_together(stream, x, sink, matrices);
}

}  // namespace octet::ops
