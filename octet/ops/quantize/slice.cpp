#include "octet/ops/quantize/slice.kernels.hpp"
#include "octet/ops/stored/stored.hpp"
#include "octet/tensor/stored_memory.hpp"

namespace octet::ops {
namespace {

constexpr std::int64_t least_side = 16;  // packs of values lie in one row and one block

void check_slice(const StoredSlice& x) {
  check(x.whole.rank == 2 && x.whole[0] % least_side == 0 && x.whole[1] % least_side == 0,
        "slice: the matrix must have sides that are multiples of {}, got {}", least_side, x.whole);
  const std::int64_t n = x.stored.count();
  check(x.first >= 0 && x.first + n <= x.whole.count() && x.first % least_side == 0 && n % least_side == 0,
        "slice: values {} to {} are no part of {}, or begin or end at no multiple of {}", x.first, x.first + n, x.whole, least_side);
  check(!scales_blocks(x.stored.storage), "slice: values are f32, bf16, f16 or e4m3_tensor, got {}", x.stored.storage);
}

// Values that a kernel reads: of e4m3_tensor decoded, in scratch.
MatrixSlice readable(Stream& stream, const StoredSlice& x) {
  MatrixSlice out{x.stored.codes, x.whole[0], x.whole[1], x.first, {}};
  if (x.stored.storage == Storage::f16) out.factor = x.stored.tensor_descale();
  if (x.stored.storage != Storage::e4m3_tensor) return out;
  out.values = stream.empty({x.stored.count()}, DType::f32);
  decode_stored(stream, flat(x.stored), out.values);
  return out;
}

BlockTable table_of(const Tensor& at, ScaleBlock block, const Shape& whole) {
  return {at, block, descale_stride(block, DType::f32, whole[0], whole[1])};
}

void check_table(std::string_view what, const Tensor& t, ScaleBlock block, const Shape& whole) {
  const Shape wanted = descale_shape(block, DType::f32, whole[0], whole[1]);
  check(t.dtype == DType::f32 && t.shape == wanted, "slice: {} must be f32 {}, got {} {}", what, wanted, t.dtype, t.shape);
}

// How the maximum of a block of `values` becomes its scale.
BlockRule rule_of(const QuantizeSpec& spec, DType values) {
  constexpr float most_f32 = 0x1.fffffep127f, most_bf16 = 0x1.fep127f;
  return {.rule = spec.rule,
          .format_max = format_max(spec.format),
          .overflow = spec.rows.whole_matrices() || values == DType::f32 ? most_f32 : most_bf16};
}

}  // namespace

bool can_quantize_slices(const QuantizeSpec& spec, const Shape& matrix) {
  return spec.encodes_slices() && matrix.rank == 2 && matrix[0] % least_side == 0 && matrix[1] % least_side == 0 &&
         spec.rows.rows % least_side == 0;
}

void slice_maxima(Stream& stream, const StoredSlice& x, ScaleBlock block, const Tensor& maxima) {
  check_slice(x), check_table("maxima", maxima, block, x.whole);
  clear(stream, maxima);
  if (x.stored.count() == 0) return;
  const Scope scope(stream);
  const MatrixSlice slice = readable(stream, x);
  stream.count({.ops = 1, .bytes = double(slice.values.bytes())});
  OCTET_LAUNCH(stream, slice_maxima, slice, table_of(maxima, block, x.whole));
}

void scales_of_maxima(Stream& stream, const QuantizeSpec& spec, DType values, const Tensor& maxima, const Tensor& scales,
                      const Tensor& descales) {
  check(spec.quantizes() && !spec.scale_known() && spec.descale_dtype() == DType::f32,
        "scales_of_maxima: the spec must compute f32 scales from data");
  for (const Tensor* t : {&maxima, &scales, &descales})
    check(t->dtype == DType::f32 && t->count() == maxima.count(), "scales_of_maxima: wants three tables of f32 {}, got {} {}", maxima.shape,
          t->dtype, t->shape);
  const BlockRule rule = rule_of(spec, values);
  stream.count({.ops = 1, .bytes = 3.0 * double(maxima.bytes())});
  if (stream.device() == Device::cuda)
    OCTET_RUN_CUDA(scales_of_maxima, stream.queue(), rule, maxima.count(), maxima.f32(), scales.f32(), descales.f32());
  if (stream.device() != Device::cpu) return;
  for (std::int64_t i = 0; i < maxima.count(); ++i) {
    const auto s = block_scale(maxima.f32()[i], rule);
    scales.f32()[i] = s.scale, descales.f32()[i] = s.descale;
  }
}

void quantize_slice(Stream& stream, const StoredSlice& x, const QuantizeSpec& spec, const Tensor& scales, const Tensor& codes) {
  check_slice(x), check_quantizable(spec);
  check(spec.encodes_slices(), "slice: wants one scale per tensor, matrix or 128x128 with f32 descales, got {} and {}", spec.rows,
        spec.cols);
  check(codes.dtype == spec.format && codes.count() == x.stored.count(), "slice: codes must be {} [{}], got {} {}", spec.format,
        x.stored.count(), codes.dtype, codes.shape);
  const Tensor table = spec.scale_known() ? spec.scale : scales;
  check_table("scales", table, spec.rows, x.whole);
  const ScaleBlock of_maxima = spec.rows.whole_matrices() ? spec.rows : ScaleBlock{};
  if (spec.amax) check_table("maxima", spec.amax, of_maxima, x.whole);
  if (codes.count() == 0) return;
  const Scope scope(stream);
  const MatrixSlice slice = readable(stream, x);
  stream.count({.ops = 1, .bytes = double(slice.values.bytes() + codes.bytes())});
  OCTET_LAUNCH(
      stream, quantize_slice, slice, spec,
      SliceTables{table_of(table, spec.rows, x.whole), table_of(spec.descale, spec.rows, x.whole), table_of(spec.amax, of_maxima, x.whole)},
      codes);
}

}  // namespace octet::ops
