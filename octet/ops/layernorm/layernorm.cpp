#include "octet/ops/add/add.hpp"
#include "octet/ops/layernorm/layernorm.kernels.hpp"

namespace octet::ops {
namespace {

void check_row_statistics(const Tensor& x, const Tensor& mean, const Tensor& inv_std) {
  check(x.shape.rank == 2, "layernorm: x must be [T, D], got {}", x.shape);
  check(mean.shape == Shape{x.shape[0]} && inv_std.shape == mean.shape && mean.dtype == DType::f32 && inv_std.dtype == DType::f32,
        "layernorm: mean and inv_std must be f32 [{}], got {} {} and {} {}", x.shape[0], mean.dtype, mean.shape, inv_std.dtype,
        inv_std.shape);
}
void check_statistics(const Tensor& x, const Tensor& w, const Tensor& mean, const Tensor& inv_std) {
  check_row_statistics(x, mean, inv_std);
  check(w.shape == Shape{x.shape[1]} && w.dtype == DType::f32, "layernorm: w must be f32 [{}], got {} {}", x.shape[1], w.dtype, w.shape);
}

}  // namespace

void layernorm_forward(Stream& stream, const LayerNormForward& a) {
  check_statistics(a.x, a.w, a.mean, a.inv_std);
  check(a.y.shape == a.x.shape && a.y.dtype == a.x.dtype, "layernorm: y must be like x {} {}, got {} {}", a.x.dtype, a.x.shape, a.y.dtype,
        a.y.shape);
  check(a.b.shape == a.w.shape && a.b.dtype == DType::f32, "layernorm: b must be f32 {}, got {} {}", a.w.shape, a.b.dtype, a.b.shape);
  if (a.added) check_add(a.x, a.added, a.x);
  check(!a.added || !a.known, "layernorm: statistics of a sum are not known before it is made");
  stream.count({.ops = 1, .bytes = (a.added ? 4.0 : 2.0) * double(a.x.bytes())});
  OCTET_LAUNCH(stream, layernorm_forward, a);
}

void layernorm_add(Stream& stream, const LayerNormAdd& a) {
  check_row_statistics(a.sum, a.mean, a.inv_std);
  check_add(a.a, a.b, a.sum);
  stream.count({.ops = 1, .bytes = 3.0 * double(a.sum.bytes())});
  OCTET_LAUNCH(stream, layernorm_add, a);
}

void layernorm_backward(Stream& stream, const LayerNormBackward& a) {
  check_statistics(a.x, a.w, a.mean, a.inv_std);
  check(a.dy.shape == a.x.shape && a.dx.shape == a.x.shape && a.dy.dtype == a.x.dtype && a.dx.dtype == a.x.dtype,
        "layernorm: dy and dx must be like x {} {}, got {} {} and {} {}", a.x.dtype, a.x.shape, a.dy.dtype, a.dy.shape, a.dx.dtype,
        a.dx.shape);
  check(a.dw.shape == a.w.shape && a.db.shape == a.w.shape && a.dw.dtype == DType::f32 && a.db.dtype == DType::f32,
        "layernorm: dw and db must be f32 {}, got {} {} and {} {}", a.w.shape, a.dw.dtype, a.dw.shape, a.db.dtype, a.db.shape);
  stream.count({.ops = 1, .bytes = (a.accumulate ? 4.0 : 3.0) * double(a.x.bytes())});
  const Scope scope(stream);
  const Tensor sums = stream.empty({stream.workers(), 2 * a.x.shape[1]}, DType::f32, Lifetime::scratch, Category::workspace);
  OCTET_LAUNCH(stream, layernorm_backward, a, sums);
}

}  // namespace octet::ops
