#include "octet/ops/normal/normal.kernels.hpp"

namespace octet::ops {

void fill_normal(Stream& stream, std::uint64_t key, double deviation, const Tensor& x, std::int64_t first) {
  check(x.dtype == DType::f32 || x.dtype == DType::bf16, "fill_normal: wants f32 or bf16, got {}", x.dtype);
  check(first >= 0 && first % 4 == 0, "fill_normal: a slice begins at a multiple of 4, got {}", first);
  stream.count({.ops = 1, .bytes = double(x.bytes())});
  OCTET_LAUNCH(stream, fill_normal, key, float(deviation), x, first);
}

}  // namespace octet::ops
