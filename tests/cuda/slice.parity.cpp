#include "octet/ops/quantize/from_codes.hpp"
#include "octet/ops/quantize/quantize.hpp"
#include "octet/ops/quantize/slice.hpp"
#include "tests/cuda/sinks.hpp"

// Codes of a slice of a matrix, and operands that are made from codes.

namespace octet::parity {
namespace {

void measure(Side& side, const std::string& name, const Tensor& amax, const Tensor& health, std::int64_t n) {
  side.result(name + " amax", amax, same_bits());
  std::byte* const at = health.as<std::byte>();
  side.result(name + " range of scales", {at + offsetof(ops::QuantizeHealth, scale_min), {2}, DType::f32}, same_bits());
  side.result(name + " values, saturated, flushed, nonfinite", {at + offsetof(ops::QuantizeHealth, values), {4}, DType::i64}, same_bits());
  side.result(name + " signal and noise", {at + offsetof(ops::QuantizeHealth, signal), {2}, DType::f64},
              within(2 * double(n + 2) * 0x1p-53 * double(n) * 1024));
}

/// Known scales, of which each matrix has another.
void know(Side& side, ops::QuantizeSpec& spec, std::int64_t matrices) {
  std::vector<float> scales, descales;
  for (std::int64_t e = 0; e < matrices; ++e) scales.push_back(24.0f + 3 * float(e)), descales.push_back(1 / scales.back());
  spec.scale = side.from(scales, {matrices}), spec.descale = side.from(descales, {matrices});
}

/// Specs of a stack of matrices of so many rows.
std::vector<Kind> stacks(std::int64_t rows) {
  std::vector<Kind> out;
  for (const Kind& kind : kinds(DType::f32)) {
    if (!kind.spec.encodes_slices() || !kind.spec.rows.whole_tensor()) continue;
    out.push_back(kind), out.back().name += format(" of each {} rows", rows), out.back().spec.scale_each(rows);
  }
  return out;
}

/// quantize() of a stack: operands, maxima and health.
Case stack(const Kind& kind, DType dtype, Shape shape) {
  return {format("stack {} of {} {}", kind.name, dtype, shape), [=](Side& side) {
            const std::int64_t matrices = shape[0] / kind.spec.rows.rows;
            const Tensor x = side.gaussian(shape, 1, dtype, 3), amax = side.from(std::vector<float>(std::size_t(matrices)), {matrices}),
                         health = side.raw(std::vector<std::uint8_t>(sizeof(ops::QuantizeHealth)), {sizeof(ops::QuantizeHealth)});
            ops::QuantizeSpec spec = kind.spec;
            if (kind.known) know(side, spec, matrices);
            spec.amax = amax, spec.health = health.as<ops::QuantizeHealth>(), spec.measure_noise = true;
            ops::Sink sink =
                ops::make_sink(side.stream(), spec,
                               {.shape = shape, .dtype = dtype, .cols = true, .rows_region = Lifetime::run, .cols_region = Lifetime::run});
            ops::quantize(side.stream(), x, sink);
            side.result("codes", sink.codes.rows.codes, same_bits());
            side.result("transposed codes", sink.codes.cols.codes, same_bits());
            side.result("descales", sink.codes.rows.descales, same_bits());
            measure(side, "stack", amax, health, shape.count());
          }};
}

/// Values [first, first + n) of a matrix.
struct Cut {
  Shape matrix;
  std::int64_t first, n;
};

Case slice(const Kind& kind, DType dtype, const Cut& cut, bool odd) {
  return {format("slice {} of {} {} from {} of {}{}", kind.name, dtype, cut.n, cut.first, cut.matrix, odd ? " odd" : ""), [=](Side& side) {
            const Tensor x = odd ? side.from(odd_values(cut.n), {cut.n}, dtype) : side.gaussian({cut.n}, 1, dtype, 3);
            const Stored stored = dtype == DType::f16 ? Stored{.codes = x, .scales = side.from({0x1p-3f, 0}, {2}), .storage = Storage::f16}
                                                      : Stored::plain(x);
            const Shape table = descale_shape(kind.spec.rows, DType::f32, cut.matrix[0], cut.matrix[1]);
            const std::int64_t matrices = kind.spec.rows.whole_matrices() ? table.count() : 1;
            const Tensor maxima = side.poisoned(table, DType::f32), scales = side.poisoned(table, DType::f32),
                         descales = side.poisoned(table, DType::f32), codes = side.poisoned({cut.n}, kind.spec.format),
                         amax = side.from(std::vector<float>(std::size_t(matrices), 0.25f), {matrices}),
                         health = side.raw(std::vector<std::uint8_t>(sizeof(ops::QuantizeHealth)), {sizeof(ops::QuantizeHealth)});
            const StoredSlice part{stored, cut.matrix, cut.first};
            ops::QuantizeSpec spec = kind.spec;
            ops::slice_maxima(side.stream(), part, spec.rows, maxima);
            side.result("maxima", maxima, same_bits());
            if (kind.known) {
              know(side, spec, matrices);
            } else {
              ops::scales_of_maxima(side.stream(), spec, stored.value_type(), maxima, scales, descales);
              side.result("scales", scales, same_bits()), side.result("descales", descales, same_bits());
            }
            spec.amax = amax, spec.health = health.as<ops::QuantizeHealth>(), spec.measure_noise = !odd;
            for (int again = 0; again < 2; ++again) ops::quantize_slice(side.stream(), part, spec, scales, codes);  // counts add up
            side.result("codes", codes, same_bits());
            measure(side, "slice", amax, health, 2 * cut.n);
          }};
}

Case turned(const Kind& kind, Shape shape) {
  return {format("operands from codes {} {}", kind.name, shape), [=](Side& side) {
            const ScaleBlock block = kind.spec.rows;
            std::vector<std::uint8_t> bytes;
            for (std::int64_t i = 0; i < shape.count(); ++i) bytes.push_back(std::uint8_t(philox(3, std::uint64_t(i)).w[0]));
            const Tensor raw = side.raw(bytes, shape);
            const Shape table = descale_shape(block, DType::f32, shape[0], shape[1]);
            const Quantized rows{.codes = {raw.data, shape, kind.spec.format}, .descales = side.gaussian(table, 5), .block = block};
            const ScaleBlock of_cols = block.transposed();
            const Quantized cols{.codes = side.poisoned({shape[1], shape[0]}, kind.spec.format),
                                 .descales = side.poisoned(descale_shape(of_cols, DType::f32, shape[1], shape[0]), DType::f32),
                                 .block = of_cols};
            ops::transpose_codes(side.stream(), rows, cols);
            side.result("codes", cols.codes, same_bits()), side.result("descales", cols.descales, same_bits());
          }};
}

std::vector<Case> make() {
  std::vector<Case> cases;
  const Cut cuts[] = {{{16, 16}, 0, 256},       {{64, 48}, 128, 1280}, {{272, 144}, 5120, 20480},
                      {{16, 4112}, 256, 65536}, {{256, 384}, 0, 0},    {{896, 1536}, 100096, 1000064}};
  for (const Kind& kind : kinds(DType::f32))
    if (kind.spec.encodes_slices()) {
      for (const Cut& cut : cuts)
        for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
          for (const bool odd : {false, true})
            if (!odd || dtype != DType::f16) cases.push_back(slice(kind, dtype, cut, odd));
      for (const Shape shape : {Shape{16, 16}, Shape{272, 144}, Shape{128, 256}, Shape{896, 4864}}) cases.push_back(turned(kind, shape));
    }
  for (const Kind& kind : stacks(16))
    for (const Cut& cut : cuts)
      for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) cases.push_back(slice(kind, dtype, cut, false));
  for (const std::int64_t rows : {48, 112, 128}) {
    const Shape all{7 * rows, 256};
    for (const Kind& kind : stacks(rows)) {
      cases.push_back(slice(kind, DType::f32, {all, 128 * 37, 128 * 300}, true));
      cases.push_back(turned(kind, all));
      for (const DType dtype : {DType::f32, DType::bf16}) cases.push_back(stack(kind, dtype, all));
    }
  }
  return cases;
}
const Cases registered(make);

}  // namespace
}  // namespace octet::parity
