#include "octet/ops/sink/sink.hpp"

namespace octet::ops {
namespace {

Quantized operand(Stream& stream, const QuantizeSpec& spec, ScaleBlock block, std::int64_t rows, std::int64_t cols, Region region,
                  Category category) {
  Quantized q;
  q.block = block;
  q.power_of_two = spec.rule != ScaleRule::quotient;
  q.codes = stream.empty({rows, cols}, spec.format, region, category);
  q.descales = spec.scale_known()
                   ? spec.descale
                   : stream.empty(descale_shape(block, spec.descale_dtype(), rows, cols), spec.descale_dtype(), region, category);
  return q;
}

bool is_wider_than_a_tile(const Quantized& q) { return q && (q.block.whole_tensor() || q.block.whole_rows()); }

}  // namespace

bool Sink::waits() const {
  return spec.quantizes() && !spec.scale_known() && (is_wider_than_a_tile(codes.rows) || is_wider_than_a_tile(codes.cols));
}

Sink make_sink(Stream& stream, const QuantizeSpec& spec, const SinkRequest& want) {
  check(want.shape.rank == 2 && (want.dtype == DType::f32 || want.dtype == DType::bf16),
        "sink: wants [rows, cols] of f32 or bf16, got {} {}", want.shape, want.dtype);
  check_quantizable(spec);
  const auto rows = want.shape[0], cols = want.shape[1];
  const bool gpu = stream.target().device == Device::cuda;
  Sink sink{.shape = want.shape, .dtype = want.dtype, .spec = spec};
  if (!spec.quantizes()) {
    sink.plain = stream.empty(want.shape, want.dtype, want.cols_region, want.category);
    if (want.rows) sink.codes.rows = {.codes = sink.plain};
    if (want.cols) sink.codes.cols = {.codes = sink.plain, .transposed = true};
    return sink;
  }
  if (want.cols) sink.codes.cols = operand(stream, spec, spec.cols, cols, rows, want.cols_region, want.category);
  if (want.rows) sink.codes.rows = operand(stream, spec, spec.rows, rows, cols, want.rows_region, want.category);
  // Both per tensor, the two orientations share one scale, hence one descale, which must live as long as the longer-lived one.
  if (want.rows && want.cols && spec.rows.whole_tensor() && spec.cols.whole_tensor()) sink.codes.rows.descales = sink.codes.cols.descales;
  if (want.plain) sink.plain = want.plain;
  else if (want.keep_plain) sink.plain = stream.empty(want.shape, want.dtype, want.cols_region, want.category);
  else if (!spec.local(want.cols) || (gpu && sink.waits())) sink.plain = stream.empty(want.shape, want.dtype, want.rows_region);
  if (gpu && sink.waits()) {
    const auto lines_of = [](const Quantized& q) { return q && q.block.whole_rows() ? q.rows() : 0; };
    sink.maxima = stream.empty({1 + lines_of(sink.codes.rows) + lines_of(sink.codes.cols)}, DType::f32, want.rows_region);
  }
  return sink;
}

}  // namespace octet::ops
