#include "octet/ops/adamw/adamw.kernels.hpp"

namespace octet::ops {

void adamw(Stream& stream, const AdamW& a) {
  const Shape& shape = a.value.shape;
  check(a.grad.shape == shape && a.moments.m.shape == shape && a.moments.v.shape == shape,
        "adamw: grad, m and v must be {}, got {}, {} and {}", shape, a.grad.shape, a.moments.m.shape, a.moments.v.shape);
  check(a.value.dtype == DType::f32 && a.grad.dtype == DType::f32, "adamw: value and grad must be f32, got {} and {}", a.value.dtype,
        a.grad.dtype);
  check(a.step.shape == Shape{adamw_step_floats} && a.step.dtype == DType::f32, "adamw: step must be f32 [{}], got {} {}", adamw_step_floats, a.step.dtype, a.step.shape);
  stream.count({.ops = 1, .bytes = 3.0 * double(a.value.bytes()) + 2.0 * double(a.moments.m.bytes()) + 2.0 * double(a.moments.v.bytes())});
  OCTET_LAUNCH(stream, adamw, a);
}

}  // namespace octet::ops
