#include "octet/ops/column_codes/column_codes.hpp"

#include "octet/ops/column_codes/column_codes.kernels.hpp"

namespace octet::ops {
namespace {

constexpr std::int64_t pack = 8;

void check_values(const Tensor& x, const ColumnGroups& groups) {
  std::int64_t columns = 0;
  for (const ColumnGroup& g : groups) {
    check(g.columns >= 0 && g.columns % pack == 0, "column codes: a group of {} columns is not a multiple of {}", g.columns, pack);
    columns += g.columns;
  }
  check(x.shape.rank == 2 && x.shape[1] == columns && (x.dtype == DType::f32 || x.dtype == DType::bf16),
        "column codes: values must be f32 or bf16 [T, {}], got {} {}", columns, x.dtype, x.shape);
}

void check_codes(const Tensor& x, const ColumnGroups& groups, const Tensor& codes) {
  check_values(x, groups);
  check(codes.shape == x.shape && is_fp8(codes.dtype), "column codes: codes must be e4m3 or e5m2 {}, got {} {}", x.shape, codes.dtype,
        codes.shape);
  for (const ColumnGroup& g : groups)
    check(g.columns == 0 || (g.spec.format == codes.dtype && g.spec.scale_known() && g.spec.descale && g.spec.rows.whole_tensor()),
          "column codes: each group must have a known scale per tensor and the format {}", codes.dtype);
}

}  // namespace

void column_maxima(Stream& stream, const Tensor& x, const ColumnGroups& groups, const Tensor& maxima) {
  check_values(x, groups);
  check(maxima.shape == Shape{std::int64_t(groups.size())} && maxima.dtype == DType::f32, "column codes: maxima must be f32 [3], got {} {}",
        maxima.dtype, maxima.shape);
  clear(stream, maxima);
  stream.count({.ops = 1, .bytes = double(x.bytes())});
  if (x.count() > 0) OCTET_LAUNCH(stream, column_maxima, x, groups, maxima);
}

void encode_columns(Stream& stream, const Tensor& x, const ColumnGroups& groups, const Tensor& codes) {
  check_codes(x, groups, codes);
  stream.count({.ops = 1, .bytes = double(x.bytes() + codes.bytes())});
  if (x.count() > 0) OCTET_LAUNCH(stream, encode_columns, x, groups, codes);
}

void decode_columns(Stream& stream, const Tensor& codes, const ColumnGroups& groups, const Tensor& x) {
  check_codes(x, groups, codes);
  stream.count({.ops = 1, .bytes = double(x.bytes() + codes.bytes())});
  if (x.count() > 0) OCTET_LAUNCH(stream, decode_columns, codes, groups, x);
}

}  // namespace octet::ops
