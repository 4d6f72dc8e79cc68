#include "octet/ops/clamp_columns/clamp_columns.hpp"

#include "octet/ops/clamp_columns/clamp_columns.kernels.hpp"

namespace octet::ops {
namespace {

void check_columns(const char* op, const CopyColumns& c, const Tensor& outside) {
  check(c.from.shape.rank == 2 && c.to.shape.rank == 2 && c.from.shape[0] == c.to.shape[0] && c.from.dtype == c.to.dtype &&
            is_activation(c.from.dtype),
        "{}: from and to must be [T, A] and [T, B], both f32, bf16 or f16, got {} {} and {} {}", op, c.from.dtype, c.from.shape, c.to.dtype,
        c.to.shape);
  const auto has = [&](const Tensor& t, std::int64_t first) { return first >= 0 && c.columns >= 0 && first + c.columns <= t.shape[1]; };
  check(has(c.from, c.from_column) && has(c.to, c.to_column), "{}: {} columns from {} of {} do not fit to {} of {}", op, c.columns,
        c.from_column, c.from.shape, c.to_column, c.to.shape);
  const Shape bits{c.from.shape[0], clamp_bytes(c.columns)};
  check(!outside || (outside.dtype == DType::u8 && outside.shape == bits), "{}: outside must be u8 {}, got {} {}", op, bits, outside.dtype,
        outside.shape);
}

double bytes_of(const CopyColumns& c, const Tensor& outside) {
  return 2.0 * double(c.from.shape[0] * c.columns) * double(size_of(c.from.dtype)) + double(outside ? outside.bytes() : 0);
}

}  // namespace

void clamp_columns(Stream& stream, const ClampColumns& a) {
  check_columns("clamp_columns", a.columns, a.outside);
  check(a.limit > 0, "clamp_columns: the limit must be above 0, got {}", a.limit);
  stream.count({.ops = 1, .bytes = bytes_of(a.columns, a.outside)});
  OCTET_LAUNCH(stream, clamp_columns, a);
}

void clamp_columns_backward(Stream& stream, const ClampColumnsBackward& a) {
  check_columns("clamp_columns_backward", a.columns, a.outside);
  check(bool(a.outside), "clamp_columns_backward: wants the bits that forward stored");
  stream.count({.ops = 1, .bytes = bytes_of(a.columns, a.outside)});
  OCTET_LAUNCH(stream, clamp_columns_backward, a);
}

}  // namespace octet::ops
