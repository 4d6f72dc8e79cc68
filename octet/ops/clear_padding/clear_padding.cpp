#include "octet/ops/clear_padding/clear_padding.hpp"

#include <algorithm>

#include "octet/ops/clear_padding/clear_padding.kernels.hpp"

namespace octet::ops {

void clear_padding(Stream& stream, const RowGroups& groups, const Tensor& x) {
  check_row_groups("clear_padding", groups);
  check(x.shape.rank == 2 && is_activation(x.dtype), "clear_padding: wants a matrix of f32, bf16 or f16, got {} {}", x.shape, x.dtype);
  stream.count({.ops = 1, .bytes = double(groups.size() * std::min(groups.tile, x.shape[0]) * x.shape[1]) * double(size_of(x.dtype))});
  OCTET_LAUNCH(stream, clear_padding, groups, x);
}

}  // namespace octet::ops
