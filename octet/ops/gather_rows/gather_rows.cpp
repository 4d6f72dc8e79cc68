#include "octet/ops/gather_rows/gather_rows.kernels.hpp"

namespace octet::ops {

void gather_rows(Stream& stream, const Tensor& x, const ExpertMap& map, Sink& y) {
  check_expert_map("gather_rows", map);
  check(x.shape.rank == 2 && x.shape[0] == map.tokens() && is_activation(x.dtype),
        "gather_rows: x must be [{}, C] of f32, bf16 or f16, got {} {}", map.tokens(), x.dtype, x.shape);
  check(y.shape == Shape{map.rows(), x.shape[1]} && y.dtype == x.dtype, "gather_rows: y must be {} [{}, {}], got {} {}", x.dtype,
        map.rows(), x.shape[1], y.dtype, y.shape);
  stream.count({.ops = 1, .bytes = double(x.bytes()) + double(y.shape.count()) * double(size_of(y.dtype))});
  OCTET_LAUNCH(stream, gather_rows, x, map, y);
}

}  // namespace octet::ops
