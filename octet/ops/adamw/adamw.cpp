#include "octet/ops/adamw/adamw.kernels.hpp"

namespace octet::ops {

void adamw(Stream& stream, const AdamW& a) {
  const Shape& shape = a.value.shape;
  check(a.grad.shape == shape && a.moments.m.shape == shape && a.moments.v.shape == shape,
        "adamw: grad, m and v must be {}, got {}, {} and {}", shape, a.grad.shape, a.moments.m.shape, a.moments.v.shape);
  for (const Tensor* t : {&a.value, &a.grad, &a.moments.m, &a.moments.v})
    check(t->dtype == DType::f32 || t->dtype == DType::bf16, "adamw: value, grad and moments must be f32 or bf16, got {}", t->dtype);
  check(a.moments.m.dtype == a.moments.v.dtype, "adamw: both moments must have one dtype, got {} and {}", a.moments.m.dtype, a.moments.v.dtype);
  check(a.step.shape == Shape{adamw_step_floats} && a.step.dtype == DType::f32, "adamw: step must be f32 [{}], got {} {}", adamw_step_floats, a.step.dtype, a.step.shape);
  stream.count({.ops = 1, .bytes = double(a.grad.bytes()) + 2.0 * double(a.value.bytes()) + 2.0 * double(a.moments.m.bytes()) + 2.0 * double(a.moments.v.bytes())});
  OCTET_LAUNCH(stream, adamw, a);
}

}  // namespace octet::ops
