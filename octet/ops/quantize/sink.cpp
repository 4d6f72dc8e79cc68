#include "octet/ops/quantize/sink.hpp"

#include "octet/ops/quantize/stack.hpp"

namespace octet::ops {
namespace {

Tensor descales_of(Stream& stream, const QuantizeSpec& spec, ScaleBlock block, std::int64_t rows, std::int64_t cols, Region region,
                   Category category) {
  if (spec.scale_known()) return spec.descale;
  return stream.empty(descale_shape(block, spec.descale_dtype(), rows, cols), spec.descale_dtype(), region, category);
}

Quantized operand(Stream& stream, const QuantizeSpec& spec, ScaleBlock block, std::int64_t rows, std::int64_t cols, Region region,
                  Category category) {
  Quantized q;
  q.block = block;
  q.power_of_two = spec.rule != ScaleRule::quotient;
  q.codes = stream.empty({rows, cols}, spec.format, region, category);
  q.descales = descales_of(stream, spec, block, rows, cols, region, category);
  return q;
}

// The orientations as a CPU's GEMM takes them.
class CpuOperands {
 public:
  CpuOperands(Stream& stream, const QuantizeSpec& spec, const SinkRequest& want) : stream_(stream), spec_(spec), want_(want) {}

  QTensor make() const {
    const bool scratch_rows = is_scratch(want_.rows_region), scratch_cols = is_scratch(want_.cols_region);
    const bool one = want_.rows && want_.cols && !turned_ && same(want_.rows_region, want_.cols_region) && spec_.same_codes();
    const DType both = one ? compute_ : spec_.format;
    QTensor q;
    if (want_.cols) q.cols = operand(spec_.cols, true, stored(scratch_cols ? compute_ : both, spec_.cols), want_.cols_region, {});
    if (want_.rows)
      q.rows =
          operand(spec_.rows, false, stored(scratch_rows ? compute_ : both, spec_.rows), want_.rows_region, one ? q.cols.codes : Tensor{});
    return q;
  }

 private:
  static bool is_scratch(Region r) { return r.lifetime == Lifetime::scratch; }
  static bool same(Region a, Region b) { return a.lifetime == b.lifetime && a.slot == b.slot; }
  DType stored(DType wanted, ScaleBlock block) const { return wanted == DType::bf16 && !spec_.fits_bf16(block) ? spec_.format : wanted; }

  Quantized operand(ScaleBlock block, bool cols, DType dtype, Region region, const Tensor& codes) const {
    const std::int64_t R = want_.shape[0], C = want_.shape[1];
    const bool turned = cols && turned_;
    Quantized q{
        .block = block, .power_of_two = spec_.rule != ScaleRule::quotient, .transposed = cols && !turned, .decoded = !is_fp8(dtype)};
    const bool exist = want_.codes && !q.decoded && !turned;  // in their own order
    if (exist && !cols) return want_.codes;
    q.codes = exist ? want_.codes.codes : codes ? codes : stream_.empty(turned ? Shape{C, R} : Shape{R, C}, dtype, region, want_.category);
    if (!q.decoded || !spec_.decodes_with_descale(block))
      q.descales = descales_of(stream_, spec_, block, q.rows(), q.cols(), region, want_.category);
    return q;
  }

  Stream& stream_;
  const QuantizeSpec& spec_;
  const SinkRequest& want_;
  DType compute_ = stream_.target().gemm_compute;
  bool turned_ = want_.cols_left || compute_ == DType::f32;  // columns are K-contiguous
};

bool is_wider_than_a_tile(const Quantized& q) { return q && (q.block.whole_tensor() || q.block.whole_rows()); }

}  // namespace

bool Sink::waits() const {
  return spec.quantizes() && !spec.scale_known() && (is_wider_than_a_tile(codes.rows) || is_wider_than_a_tile(codes.cols));
}

bool columns_view_codes(const Stream& stream, const SinkRequest& want) {
  const Target& target = stream.target();
  return want.for_gemm && want.cols && !want.cols_left && target.device != Device::cuda && target.gemm_compute != DType::f32;
}

Sink make_sink(Stream& stream, const QuantizeSpec& spec, const SinkRequest& want) {
  check(want.shape.rank == 2 && is_activation(want.dtype), "sink: wants [rows, cols] of f32, bf16 or f16, got {} {}", want.shape,
        want.dtype);
  check(want.dtype != DType::f16 || !spec.quantizes(), "sink: values of f16 are not quantized; {} was asked for", spec.format);
  check_quantizable(spec);
  check(!want.codes || (spec.same_codes() && want.codes.codes.dtype == spec.format && want.codes.codes.shape == want.shape),
        "sink: codes of {} {} are no row codes of {} {} whose columns have the same", want.codes.codes.dtype, want.codes.codes.shape,
        spec.format, want.shape);
  const auto rows = want.shape[0], cols = want.shape[1];
  const bool gpu = stream.target().device == Device::cuda;
  if (is_stack(spec)) check_stack(stream, spec, want.shape);
  Sink sink{.shape = want.shape, .dtype = want.dtype, .spec = spec};
  if (!spec.quantizes()) {
    sink.plain = want.plain ? want.plain : stream.empty(want.shape, want.dtype, want.cols_region, want.category);
    if (want.rows) sink.codes.rows = {.codes = sink.plain};
    if (want.cols) sink.codes.cols = {.codes = sink.plain, .transposed = true};
    return sink;
  }
  QuantizeSpec as = spec;
  if (want.codes && spec.rows.whole_matrices()) as.scale = as.descale = want.codes.descales;  // its memory serves all orientations
  if (want.for_gemm && !gpu) sink.codes = CpuOperands(stream, as, want).make();
  else {
    if (want.cols) sink.codes.cols = operand(stream, as, spec.cols, cols, rows, want.cols_region, want.category);
    if (want.rows) sink.codes.rows = want.codes ? want.codes : operand(stream, as, spec.rows, rows, cols, want.rows_region, want.category);
  }
  if (want.codes) return sink;
  // Both per tensor or matrix, the two orientations share scales, so one table of descales, with the longer of both lifetimes.
  if (want.rows && want.cols && spec.scales_matrices()) sink.codes.rows.descales = sink.codes.cols.descales;
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
