#include "octet/ops/add/add.hpp"

#include "octet/ops/add/add.kernels.hpp"

namespace octet::ops {

void check_add(const Tensor& a, const Tensor& b, const Tensor& out) {
  check(a.shape == b.shape && a.shape == out.shape && a.dtype == b.dtype && a.dtype == out.dtype,
        "add: a, b and out must be alike, got {} {}, {} {} and {} {}", a.dtype, a.shape, b.dtype, b.shape, out.dtype, out.shape);
}

void add(Stream& stream, const Tensor& a, const Tensor& b, const Tensor& out) {
  check_add(a, b, out);
  stream.count({.ops = 1, .bytes = 3.0 * double(a.bytes())});
  OCTET_LAUNCH(stream, add, a, b, out);
}

}  // namespace octet::ops
