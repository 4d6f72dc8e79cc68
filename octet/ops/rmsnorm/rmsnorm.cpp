#include "octet/ops/rmsnorm/rmsnorm.kernels.hpp"
#include "octet/tensor/cpu/threads.hpp"

namespace octet::ops {

void rmsnorm_forward(Stream& stream, const RmsNormForward& a) {
  check(a.x.shape.rank == 2 && a.x.shape == a.y.shape && a.x.dtype == a.y.dtype, "rmsnorm: y must be like x {} {}, got {} {}", a.x.shape, a.x.dtype,
        a.y.shape, a.y.dtype);
  check(a.w.shape == Shape{a.x.shape[1]} && a.inv_rms.shape == Shape{a.x.shape[0]}, "rmsnorm: w must be [{}] and inv_rms [{}], got {} and {}",
        a.x.shape[1], a.x.shape[0], a.w.shape, a.inv_rms.shape);
  stream.count({.ops = 1, .bytes = 2.0 * double(a.x.bytes())});
  if (stream.device() == Device::cpu) OCTET_RUN(rmsnorm_forward, a);
}

void rmsnorm_backward(Stream& stream, const RmsNormBackward& a) {
  check(a.dy.shape == a.x.shape && a.dx.shape == a.x.shape && a.dy.dtype == a.x.dtype && a.dx.dtype == a.x.dtype,
        "rmsnorm: dy and dx must be like x {}, got {} and {}", a.x.shape, a.dy.shape, a.dx.shape);
  check(a.w.shape == Shape{a.x.shape[1]} && a.dw.shape == a.w.shape, "rmsnorm: w and dw must be [{}], got {} and {}", a.x.shape[1], a.w.shape, a.dw.shape);
  stream.count({.ops = 1, .bytes = (a.accumulate ? 4.0 : 3.0) * double(a.x.bytes())});
  const Scope scope(stream);
  const Tensor partial = stream.zeros({cpu::threads(), a.x.shape[1]}, DType::f32, Lifetime::scratch, Category::workspace);
  if (stream.device() == Device::cpu) OCTET_RUN(rmsnorm_backward, a, partial.f32());
}

}  // namespace octet::ops
