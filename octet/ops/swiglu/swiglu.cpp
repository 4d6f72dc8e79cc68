#include "octet/ops/swiglu/swiglu.kernels.hpp"

namespace octet::ops {
namespace {

void check_halves(const Tensor& x, const Shape& half, DType half_dtype) {
  check(x.shape.rank == 2 && x.shape[1] % 2 == 0, "swiglu: x must be [T, 2 F], got {}", x.shape);
  check(half == Shape{x.shape[0], x.shape[1] / 2} && half_dtype == x.dtype, "swiglu: y must be {} [{}, {}], got {} {}", x.dtype, x.shape[0],
        x.shape[1] / 2, half_dtype, half);
}

}  // namespace

void swiglu_forward(Stream& stream, const Tensor& x, Sink& y) {
  check_halves(x, y.shape, y.dtype);
  stream.count({.ops = 1, .bytes = 1.5 * double(x.bytes())});
  OCTET_LAUNCH(stream, swiglu_forward, x, y);
}

void swiglu_backward(Stream& stream, const Tensor& dy, const Tensor& x, Sink& dx) {
  check_halves(x, dy.shape, dy.dtype);
  check(dx.shape == x.shape && dx.dtype == x.dtype, "swiglu: dx must be like x {} {}, got {} {}", x.dtype, x.shape, dx.dtype, dx.shape);
  stream.count({.ops = 1, .bytes = 2.5 * double(x.bytes())});
  OCTET_LAUNCH(stream, swiglu_backward, dy, x, dx);
}

}  // namespace octet::ops
