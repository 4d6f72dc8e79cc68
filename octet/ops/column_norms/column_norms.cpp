#include "octet/ops/column_norms/column_norms.hpp"

#include "octet/ops/column_norms/column_norms.kernels.hpp"

namespace octet::ops {

void column_norms(Stream& stream, const ColumnNorms& a) {
  check(a.x.shape.rank == 2 && is_activation(a.x.dtype), "column_norms: x must be [T, C] of f32, bf16 or f16, got {} {}", a.x.dtype,
        a.x.shape);
  std::int64_t columns = 0;
  for (const NormedColumns& r : a.ranges) {
    check(r.w.shape.rank == 1 && r.w.dtype == DType::f32, "column_norms: w must be f32 [D], got {} {}", r.w.dtype, r.w.shape);
    const std::int64_t n = r.count * r.w.shape[0];
    check(r.first >= 0 && r.count >= 0 && r.first + n <= a.x.shape[1], "column_norms: {} groups of {} columns from {} are not in {}",
          r.count, r.w.shape[0], r.first, a.x.shape);
    columns += n;
  }
  stream.count({.ops = 1, .bytes = 2.0 * double(a.x.shape[0] * columns) * double(size_of(a.x.dtype))});
  OCTET_LAUNCH(stream, column_norms, a);
}

}  // namespace octet::ops
