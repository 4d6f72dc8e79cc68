#include "octet/ops/swiglu/swiglu.kernels.hpp"

namespace octet::ops {
namespace {

void check_halves(const Saved& x, const Shape& half, DType half_dtype) {
  check(x.shape.rank == 2 && x.shape[1] % 2 == 0, "swiglu: x must be [T, 2 F], got {}", x.shape);
  check(half == Shape{x.shape[0], x.shape[1] / 2} && half_dtype == x.dtype, "swiglu: y must be {} [{}, {}], got {} {}", x.dtype, x.shape[0],
        x.shape[1] / 2, half_dtype, half);
}

}  // namespace

void swiglu_forward(Stream& stream, const Saved& x, Sink& y, Sink* codes, Gate gate) {
  check_halves(x, y.shape, y.dtype);
  const Saved in = saving(stream, x, codes);
  check_saved(in, 2, "swiglu");
  stream.count({.ops = 1, .bytes = double(in.bytes()) + double(y.shape.count()) * double(size_of(y.dtype))});
  OCTET_LAUNCH(stream, swiglu_forward, in, y, gate);
}

void swiglu_backward(Stream& stream, const Tensor& dy, const Saved& x, Sink& dx, Gate gate) {
  check_halves(x, dy.shape, dy.dtype);
  check(dx.shape == x.shape && dx.dtype == x.dtype, "swiglu: dx must be like x {} {}, got {} {}", x.dtype, x.shape, dx.dtype, dx.shape);
  check_saved(x, 2, "swiglu");
  stream.count({.ops = 1, .bytes = double(x.bytes()) + 3.0 * double(dy.bytes())});
  OCTET_LAUNCH(stream, swiglu_backward, dy, x, dx, gate);
}

}  // namespace octet::ops
