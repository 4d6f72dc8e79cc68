#include "octet/ops/weighted_sum/weighted_sum.hpp"

#include "octet/ops/adamw/adamw.hpp"
#include "octet/ops/weighted_sum/weighted_sum.kernels.hpp"

namespace octet::ops {

void weighted_sum(Stream& stream, const WeightedSum& a) {
  const auto plain = [](const Tensor& t) { return t.dtype == DType::f32 || t.dtype == DType::bf16 || t.dtype == DType::f16; };
  check(plain(a.x) && plain(a.out) && a.out.shape == a.x.shape,
        "weighted_sum: x and out must be f32, bf16 or f16 of one shape, got {} {} and {} {}", a.x.dtype, a.x.shape, a.out.dtype,
        a.out.shape);
  check(!a.y || (a.y.dtype == a.x.dtype && a.y.shape == a.x.shape), "weighted_sum: y must be {} {}, got {} {}", a.x.dtype, a.x.shape,
        a.y.dtype, a.y.shape);
  check(!a.squares || (a.squares.shape == Shape{1} && a.squares.dtype == DType::f64), "weighted_sum: squares must be f64 [1], got {} {}",
        a.squares.dtype, a.squares.shape);
  check(!a.step || (a.step.shape == Shape{adamw_step_floats} && a.step.dtype == DType::f32),
        "weighted_sum: step must be f32 [{}], got {} {}", adamw_step_floats, a.step.dtype, a.step.shape);
  stream.count({.ops = 1, .bytes = double(a.x.bytes() + a.out.bytes() + (a.y ? a.y.bytes() : 0))});
  OCTET_LAUNCH(stream, weighted_sum, a);
}

}  // namespace octet::ops
