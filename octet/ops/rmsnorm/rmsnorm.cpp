#include "octet/ops/add/add.hpp"
#include "octet/ops/rmsnorm/rmsnorm.kernels.hpp"

namespace octet::ops {
namespace {

void check_statistic(const Tensor& x, const Tensor& of_rows, const char* name = "inv_rms") {
  check(x.shape.rank == 2, "rmsnorm: x must be [T, D], got {}", x.shape);
  check(of_rows.shape == Shape{x.shape[0]} && of_rows.dtype == DType::f32, "rmsnorm: {} must be f32 [{}], got {} {}", name, x.shape[0],
        of_rows.dtype, of_rows.shape);
}
void check_statistics(const Tensor& x, const Tensor& w, const Tensor& inv_rms) {
  check_statistic(x, inv_rms);
  check(w.shape == Shape{x.shape[1]} && w.dtype == DType::f32, "rmsnorm: w must be f32 [{}], got {} {}", x.shape[1], w.dtype, w.shape);
}

}  // namespace

void rmsnorm_forward(Stream& stream, const RmsNormForward& a) {
  check_statistics(a.x, a.w, a.inv_rms);
  check(a.y.shape == a.x.shape && a.y.dtype == a.x.dtype, "rmsnorm: y must be like x {} {}, got {} {}", a.x.dtype, a.x.shape, a.y.dtype,
        a.y.shape);
  if (a.added) check_add(a.x, a.added, a.x);
  check(!a.added || !a.known, "rmsnorm: statistics of a sum are not known before it is made");
  stream.count({.ops = 1, .bytes = (a.added ? 4.0 : 2.0) * double(a.x.bytes())});
  OCTET_LAUNCH(stream, rmsnorm_forward, a);
}

void rmsnorm_add(Stream& stream, const RmsNormAdd& a) {
  check_statistic(a.sum, a.inv_rms);
  check_add(a.a, a.b, a.sum);
  stream.count({.ops = 1, .bytes = 3.0 * double(a.sum.bytes())});
  OCTET_LAUNCH(stream, rmsnorm_add, a);
}

void rmsnorm_backward(Stream& stream, const RmsNormBackward& a) {
  check_statistics(a.x, a.w, a.inv_rms);
  check(a.dy.shape == a.x.shape && a.dx.shape == a.x.shape && a.dy.dtype == a.x.dtype && a.dx.dtype == a.x.dtype,
        "rmsnorm: dy and dx must be like x {} {}, got {} {} and {} {}", a.x.dtype, a.x.shape, a.dy.dtype, a.dy.shape, a.dx.dtype,
        a.dx.shape);
  check(a.dw.shape == a.w.shape && a.dw.dtype == DType::f32, "rmsnorm: dw must be f32 {}, got {} {}", a.w.shape, a.dw.dtype, a.dw.shape);
  if (a.mean) check_statistic(a.x, a.mean, "mean");
  stream.count({.ops = 1, .bytes = (a.accumulate ? 4.0 : 3.0) * double(a.x.bytes())});
  const Scope scope(stream);
  const Tensor partial = stream.empty({stream.workers(), a.x.shape[1]}, DType::f32, Lifetime::scratch, Category::workspace);
  OCTET_LAUNCH(stream, rmsnorm_backward, a, partial);
}

}  // namespace octet::ops
