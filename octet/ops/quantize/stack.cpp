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

std::int64_t matrices_of(const Sink& sink) { return sink.shape[0] / sink.spec.rows.rows; }

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
    Sink one{.shape = {N, sink.shape[1]}, .dtype = sink.dtype, .spec = sink.spec.of_matrix(e)};
    one.codes.rows = one_of(stream, sink.codes.rows, e, N, false), one.codes.cols = one_of(stream, sink.codes.cols, e, N, true);
    quantize(stream, rows_of(x, e * N, N), one);
    if (stream.device() == Device::cpu && sink.codes.cols && !sink.codes.cols.transposed) put_columns(one.codes.cols, sink.codes.cols, e);
  }
}

// On a GPU all at once: maxima and scales, unless these are known, codes of rows, and their transpose.
void quantize_together(Stream& stream, const Stored& x, const Sink& sink, std::int64_t matrices) {
  const Scope scope(stream);
  const QTensor& to = sink.codes;
  const QuantizeSpec& spec = sink.spec;
  const StoredSlice all{.stored = x, .whole = sink.shape};
  const Tensor codes = to.rows ? to.rows.codes : stream.empty(sink.shape, spec.format);
  Tensor scales = spec.scale;
  if (!spec.scale_known()) {
    scales = stream.empty({matrices}, DType::f32);
    slice_maxima(stream, all, spec.rows, scales);
    scales_of_maxima(stream, spec, sink.dtype, scales, scales, to.rows ? to.rows.descales : to.cols.descales);
  }
  quantize_slice(stream, all, spec, scales, codes);
  if (to.cols) OCTET_LAUNCH(stream, transpose_bytes, codes, to.cols.codes);
}

}  // namespace

bool is_stack(const QuantizeSpec& spec) { return spec.quantizes() && spec.rows.whole_matrices() && !spec.rows.whole_tensor(); }

void check_stack(const Stream& stream, const QuantizeSpec& spec, const Shape& shape) {
  const std::int64_t N = spec.rows.rows;
  check(shape.rank == 2 && shape[0] % N == 0, "stack: wants whole matrices of {} rows, got {}", N, shape);
  const std::int64_t matrices = shape[0] / N;
  for (const Tensor& t : {spec.scale, spec.amax})
    check(!t || t.shape == Shape{matrices}, "stack: scales and maxima must be f32 [{}], one per matrix, got {}", matrices, t.shape);
  check(stream.target().device == Device::cpu || (N % least_side == 0 && shape[1] % least_side == 0),
        "stack: matrices must have sides that are multiples of {}, got [{}, {}]", least_side, N, shape[1]);
}

void quantize_stack(Stream& stream, const Stored& x, const Sink& sink) {
  check(is_stack(sink.spec) && x.shape() == sink.shape && !scales_blocks(x.storage) && x.value_type() == sink.dtype,
        "stack: wants {} of f32, bf16, f16 or e4m3_tensor whose values are {}, got {} {}", sink.shape, sink.dtype, x.storage, x.shape());
  check_stack(stream, sink.spec, sink.shape);
  if (sink.shape.count() == 0 || !(sink.codes.rows || sink.codes.cols)) return;
  const std::int64_t matrices = matrices_of(sink);
  if (stream.target().device == Device::cpu) quantize_each(stream, x, sink, matrices);
  else quantize_together(stream, x, sink, matrices);
}

}  // namespace octet::ops
