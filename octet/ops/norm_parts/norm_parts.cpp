#include "octet/ops/norm_parts/norm_parts.hpp"

#include "octet/ops/norm_parts/norm_parts.kernels.hpp"

namespace octet::ops {
namespace {

void check_columns(const ColumnsOf& x, std::int64_t columns, const char* name) {
  check(x.of.shape.rank == 2 && is_activation(x.of.dtype), "norm_parts: {} must be [T, C] of f32, bf16 or f16, got {} {}", name, x.of.dtype,
        x.of.shape);
  check(x.first >= 0 && columns >= 0 && x.first + columns <= x.of.shape[1], "norm_parts: {} columns from {} are not in {} {}", columns,
        x.first, name, x.of.shape);
}
void check_vector(const Tensor& v, std::int64_t values, const char* name) {
  check(v.shape == Shape{values} && v.dtype == DType::f32, "norm_parts: {} must be f32 [{}], got {} {}", name, values, v.dtype, v.shape);
}
void check_sums(const NormOfSums& a) {
  check_vector(a.sums, a.sums.count(), "sums");
  check(a.columns > 0, "norm_parts: sums are those of at least one column");
}

}  // namespace

void norm_squares(Stream& stream, const NormSquares& a) {
  check_columns(a.x, a.columns, "x"), check_vector(a.sums, a.x.of.shape[0], "sums");
  stream.count({.ops = 1, .bytes = double(a.x.of.shape[0] * a.columns) * double(size_of(a.x.of.dtype))});
  OCTET_LAUNCH(stream, norm_squares, a);
}

void norm_products(Stream& stream, const NormProducts& a) {
  check_vector(a.w, a.w.count(), "w");
  const std::int64_t rows = a.x.of.shape[0], columns = a.w.count();
  check_columns(a.dy, columns, "dy"), check_columns(a.x, columns, "x");
  check(a.dy.of.shape[0] == rows && a.dy.of.dtype == a.x.of.dtype,
        "norm_parts: dy must have the rows and the dtype of x, got {} {} and {} {}", a.dy.of.dtype, a.dy.of.shape, a.x.of.dtype,
        a.x.of.shape);
  check_vector(a.inv_rms, rows, "inv_rms"), check_vector(a.sums, rows, "sums");
  stream.count({.ops = 1, .bytes = 2.0 * double(rows * columns) * double(size_of(a.x.of.dtype))});
  OCTET_LAUNCH(stream, norm_products, a);
}

void norm_factors(Stream& stream, const NormOfSums& a) {
  check_sums(a);
  stream.count({.ops = 1, .bytes = 2.0 * double(a.sums.bytes())});
  OCTET_LAUNCH(stream, norm_factors, a);
}

void norm_means(Stream& stream, const NormOfSums& a) {
  check_sums(a);
  stream.count({.ops = 1, .bytes = 2.0 * double(a.sums.bytes())});
  OCTET_LAUNCH(stream, norm_means, a);
}

}  // namespace octet::ops
