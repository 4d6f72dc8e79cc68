#include "octet/ops/combine_rows/combine_rows.kernels.hpp"

namespace octet::ops {

void combine_rows(Stream& stream, const Tensor& x, const ExpertMap& map, const Tensor& y, bool add) {
  check_expert_map("combine_rows", map);
  check(y.shape.rank == 2 && y.shape[0] == map.tokens() && is_activation(y.dtype),
        "combine_rows: y must be [{}, C] of f32, bf16 or f16, got {} {}", map.tokens(), y.dtype, y.shape);
  check(x.shape == Shape{map.rows(), y.shape[1]} && x.dtype == y.dtype, "combine_rows: x must be {} [{}, {}], got {} {}", y.dtype,
        map.rows(), y.shape[1], x.dtype, x.shape);
  check(map.choices() > 0, "combine_rows: a token must have choices, got a map of {}", map.row.shape);
  stream.count({.ops = 1, .bytes = double(map.choices() + (add ? 2 : 1)) * double(y.bytes())});
  OCTET_LAUNCH(stream, combine_rows, x, map, y, add);
}

}  // namespace octet::ops
