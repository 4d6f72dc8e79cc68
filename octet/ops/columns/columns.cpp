#include "octet/ops/columns/columns.hpp"

#include "octet/ops/columns/columns.kernels.hpp"

namespace octet::ops {

void copy_columns(Stream& stream, const CopyColumns& a) {
  check(a.from.shape.rank == 2 && a.to.shape.rank == 2 && a.from.shape[0] == a.to.shape[0] && a.from.dtype == a.to.dtype,
        "copy_columns: from and to must be [T, A] and [T, B] of one dtype, got {} {} and {} {}", a.from.dtype, a.from.shape, a.to.dtype,
        a.to.shape);
  const auto has = [&](const Tensor& t, std::int64_t first) { return first >= 0 && a.columns >= 0 && first + a.columns <= t.shape[1]; };
  check(has(a.from, a.from_column) && has(a.to, a.to_column), "copy_columns: {} columns from {} of {} do not fit to {} of {}", a.columns,
        a.from_column, a.from.shape, a.to_column, a.to.shape);
  stream.count({.ops = 1, .bytes = 2.0 * double(a.from.shape[0] * a.columns) * double(size_of(a.from.dtype))});
  OCTET_LAUNCH(stream, copy_columns, a);
}

}  // namespace octet::ops
