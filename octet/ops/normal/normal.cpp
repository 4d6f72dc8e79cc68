#include "octet/ops/normal/normal.kernels.hpp"

namespace octet::ops {

void fill_normal(Stream& stream, std::uint64_t key, double deviation, const Tensor& x) {
  check(x.dtype == DType::f32 || x.dtype == DType::bf16, "fill_normal: wants f32 or bf16, got {}", x.dtype);
  stream.count({.ops = 1, .bytes = double(x.bytes())});
  OCTET_LAUNCH(stream, fill_normal, key, float(deviation), x);
}

}  // namespace octet::ops
