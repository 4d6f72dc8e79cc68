#include "octet/nn/weight.hpp"

#include "octet/ops/quantize/from_codes.hpp"
#include "octet/ops/quantize/quantize.hpp"
#include "octet/ops/quantize/slice.hpp"

namespace octet::nn {
namespace {

const ops::QuantizeSpec values_of_forward{.format = DType::bf16};

}  // namespace

ops::QuantizeSpec Weight::spec(const scaling::Pass& pass) const {
  ops::QuantizeSpec spec = quantizer_->spec(pass);
  if (scale_) spec.scale = scale_, spec.descale = descale_;
  return spec;
}

bool Weight::refresh_reads_values(const scaling::Pass& pass) const {
  if (parameter_.codes || refreshed_ == parameter_.version) return false;
  const ops::QuantizeSpec spec = quantizer_->spec(pass);
  return spec.quantizes() || parameter_.value.scales || spec.format != parameter_.value.codes.dtype;
}

void Weight::refresh(ops::QuantizeBatch& batch, const scaling::Pass& pass) {
  Stream& stream = batch.stream();
  if (refreshed_ == parameter_.version) return;
  check(parameter_.value || parameter_.codes, "weight {}: it has no storage; bind the model's parameters first", parameter_.path);
  if (find_scale_) find_scale_(stream);
  if (parameter_.codes) {
    refresh_from_codes(stream);
  } else if (const ops::QuantizeSpec as = spec(pass); cached_ || !as.quantizes()) {
    refresh_cached(batch, as);
  } else {
    measure(stream, pass);
  }
  refreshed_ = parameter_.version;
}

// An unquantized weight in the master's own dtype is a view of it.
ops::SinkRequest Weight::request_of(const ops::QuantizeSpec& spec, const ops::SinkRequest& orientations) const {
  const Stored& value = parameter_.value;
  const bool views = !value.scales && spec.format == value.codes.dtype;
  ops::SinkRequest want = orientations;
  want.shape = value.shape(), want.dtype = spec.quantizes() ? value.value_type() : spec.format;
  want.plain = spec.quantizes() || views ? value.codes : Tensor{};
  want.category = Category::weight_operands, want.for_gemm = true;
  return want;
}

void Weight::refresh_sink(ops::QuantizeBatch& batch, const ops::QuantizeSpec& spec, ops::SinkRequest orientations,
                          std::optional<ops::Sink>& to) const {
  orientations.rows_region = orientations.cols_region = Lifetime::run;
  const ops::SinkRequest want = request_of(spec, orientations);
  if (!to || (!spec.quantizes() && want.plain)) to = ops::make_sink(batch.stream(), spec, want);
  to->spec = spec;
  batch.add(parameter_.value, *to);
}

void Weight::refresh_cached(ops::QuantizeBatch& batch, const ops::QuantizeSpec& spec) {
  const bool values = forward_reads_values();
  if (values) refresh_sink(batch, values_of_forward, {}, values_);
  refresh_sink(batch, spec, {.rows = !values, .cols = true}, operands_);
}

void Weight::refresh_from_codes(Stream& stream) {
  check(parameter_.codes_version == parameter_.version, "weight {}: its codes are of an older version; encode them again first",
        parameter_.path);
  if (!cached_) return;
  if (!operands_) operands_ = sink_from_codes(stream, {.cols = true, .rows_region = Lifetime::run, .cols_region = Lifetime::run});
  ops::fill_from_codes(stream, parameter_.codes, *operands_);
}

// The codes as they are, and the other operands of a request made from them.
ops::Sink Weight::sink_from_codes(Stream& stream, const ops::SinkRequest& orientations) const {
  ops::SinkRequest want = orientations;
  want.shape = parameter_.shape, want.dtype = DType::f32, want.category = Category::weight_operands;
  want.codes = parameter_.codes, want.for_gemm = true;
  return ops::make_sink(stream, spec(scaling::recomputing), want);
}

// Codes that are made for each GEMM are measured here, once per change, with the scales of whole matrices that others do not find.
void Weight::measure(Stream& stream, const scaling::Pass& pass) {
  const Stored& value = parameter_.value;
  ops::QuantizeSpec as = find_scale_ ? spec(pass) : quantizer_->spec(pass);
  const bool finds_scale = !as.scale_known() && as.scales_matrices();
  if (!finds_scale && as.health == nullptr) return;
  const Shape scales = descale_shape(as.rows, DType::f32, value.shape()[0], value.shape()[1]);
  if (finds_scale && !scale_)
    for (Tensor* t : {&scale_, &descale_}) *t = stream.empty(scales, DType::f32, Lifetime::run, Category::weight_operands);
  const Scope scope(stream);
  if (finds_scale && !as.amax) as.amax = stream.zeros(scales, DType::f32);
  ops::Sink measured = ops::make_sink(stream, as, {.shape = value.shape(), .dtype = value.value_type(), .plain = value.codes});
  ops::quantize(stream, value, measured);
  if (finds_scale) ops::scales_of_maxima(stream, as, value.value_type(), as.amax, scale_, descale_);
}

bool Weight::holds_by_largest() const {
  const ops::QuantizeSpec as = quantizer_->spec(scaling::recomputing);
  return parameter_.cut && as.quantizes() && as.rows.whole_tensor() && as.cols.whole_tensor();
}

// Codes that each GEMM transposes are the rows of one sink.
void Weight::make_held(Stream& stream, const Tensor& values, Region region) {
  ops::QuantizeSpec as = quantizer_->spec(scaling::recomputing);
  check(!forward_reads_values(), "weight {}: it does not train, so its operands are in one precision", parameter_.path);
  check(!as.scale_known(), "weight {}: it does not train, so its scale follows from its values", parameter_.path);
  if (holds_by_largest()) {
    for (Tensor* t : {&scale_, &descale_}) *t = stream.empty({1}, DType::f32, Lifetime::run, Category::weight_operands);
    as.scale = scale_, as.descale = descale_;
  }
  const bool codes = !cached_ && as.quantizes() && as.same_codes();
  (codes ? held_ : operands_) = ops::make_sink(stream, as,
                                               {.shape = values.shape,
                                                .dtype = as.quantizes() ? values.dtype : as.format,
                                                .cols = !codes,
                                                .rows_region = region,
                                                .cols_region = region,
                                                .plain = as.quantizes() ? values : Tensor{},
                                                .category = Category::weight_operands,
                                                .for_gemm = !codes});
}

void Weight::hold(Stream& stream, const Tensor& values, const Tensor& largest) {
  if (!held_ && !operands_) make_held(stream, values, Lifetime::run);
  ops::Sink& to = held_ ? *held_ : *operands_;
  if (largest) ops::scales_of_maxima(stream, quantizer_->spec(scaling::recomputing), values.dtype, largest, scale_, descale_);
  parameter_.codes_version = refreshed_ = ++parameter_.version;
  const bool quantizes = to.spec.quantizes();
  if (quantizes) to.plain = values;
  ops::quantize(stream, values, to);
  if (quantizes) to.plain = {};
  if (held_) parameter_.codes = held_->codes.rows;
}

Quantized Weight::operand(Stream& stream, Side side) const {
  check(refreshed_ != 0, "weight {}: its operand is read before any refresh", parameter_.path);
  const bool rows = side == Side::rows, values = rows && forward_reads_values();
  const auto of = [&](const ops::Sink& s) { return rows ? s.codes.rows : s.codes.cols; };
  if (const std::optional<ops::Sink>& kept = values ? values_ : operands_) return of(*kept);
  if (parameter_.codes) {
    ops::Sink made = sink_from_codes(stream, {.rows = rows, .cols = !rows});
    ops::fill_from_codes(stream, parameter_.codes, made);
    return of(made);
  }
  const ops::QuantizeSpec as = values ? values_of_forward : spec(scaling::recomputing);
  ops::Sink made = ops::make_sink(stream, as, request_of(as, {.rows = rows, .cols = !rows}));
  ops::quantize(stream, parameter_.value, made);
  return of(made);
}

}  // namespace octet::nn
