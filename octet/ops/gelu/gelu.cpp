#include "octet/ops/gelu/gelu.kernels.hpp"

namespace octet::ops {

void gelu_forward(Stream& stream, const Tensor& x, Sink& y) {
  check(x.shape.rank == 2 && y.shape == x.shape && y.dtype == x.dtype, "gelu: y must be like x {} {}, got {} {}", x.dtype, x.shape, y.dtype,
        y.shape);
  stream.count({.ops = 1, .bytes = 2.0 * double(x.bytes())});
  OCTET_LAUNCH(stream, gelu_forward, x, y);
}

void gelu_backward(Stream& stream, const Tensor& dy, const Tensor& x, Sink& dx) {
  check(x.shape.rank == 2 && dy.shape == x.shape && dx.shape == x.shape && dy.dtype == x.dtype && dx.dtype == x.dtype,
        "gelu: dy and dx must be like x {} {}, got {} {} and {} {}", x.dtype, x.shape, dy.dtype, dy.shape, dx.dtype, dx.shape);
  stream.count({.ops = 1, .bytes = 3.0 * double(x.bytes())});
  OCTET_LAUNCH(stream, gelu_backward, dy, x, dx);
}

}  // namespace octet::ops
