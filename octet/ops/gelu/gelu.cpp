#include "octet/ops/gelu/gelu.kernels.hpp"
#include "octet/ops/quantize/quantize.hpp"

namespace octet::ops {

void gelu_forward(Stream& stream, const Saved& x, Sink& y, Sink* codes) {
  check(x.shape.rank == 2 && y.shape == x.shape && y.dtype == x.dtype, "gelu: y must be like x {} {}, got {} {}", x.dtype, x.shape, y.dtype,
        y.shape);
  check_saved(x, 1, "gelu");
  if (codes != nullptr) quantize(stream, x.values, *codes);
  stream.count({.ops = 1, .bytes = double(x.bytes()) + double(y.shape.count()) * double(size_of(y.dtype))});
  OCTET_LAUNCH(stream, gelu_forward, x, y);
}

void gelu_backward(Stream& stream, const Tensor& dy, const Saved& x, Sink& dx) {
  check(x.shape.rank == 2 && dy.shape == x.shape && dx.shape == x.shape && dy.dtype == x.dtype && dx.dtype == x.dtype,
        "gelu: dy and dx must be like x {} {}, got {} {} and {} {}", x.dtype, x.shape, dy.dtype, dy.shape, dx.dtype, dx.shape);
  check_saved(x, 1, "gelu");
  stream.count({.ops = 1, .bytes = double(x.bytes()) + 2.0 * double(dy.bytes())});
  OCTET_LAUNCH(stream, gelu_backward, dy, x, dx);
}

}  // namespace octet::ops
