#include "octet/ops/adamw/adamw.kernels.hpp"

namespace octet::ops {
namespace {

void check_parameter(const AdamWParameter& p) {
  const Shape& shape = p.value.shape;
  check(p.grad.shape == shape && p.moments.m.shape == shape && p.moments.v.shape == shape,
        "adamw: grad, m and v must be {}, got {}, {} and {}", shape, p.grad.shape, p.moments.m.shape, p.moments.v.shape);
  for (const Tensor* t : {&p.value, &p.grad, &p.moments.m, &p.moments.v})
    check(t->dtype == DType::f32 || t->dtype == DType::bf16, "adamw: value, grad and moments must be f32 or bf16, got {}", t->dtype);
  check(p.moments.m.dtype == p.moments.v.dtype, "adamw: both moments must have one dtype, got {} and {}", p.moments.m.dtype,
        p.moments.v.dtype);
}

}  // namespace

void adamw(Stream& stream, const AdamW& a) {
  check(a.step.shape == Shape{adamw_step_floats} && a.step.dtype == DType::f32, "adamw: step must be f32 [{}], got {} {}",
        adamw_step_floats, a.step.dtype, a.step.shape);
  double bytes = 0;
  for (const AdamWParameter& p : a.parameters) {
    check_parameter(p);
    bytes += double(p.grad.bytes()) + 2.0 * double(p.value.bytes() + p.moments.m.bytes() + p.moments.v.bytes());
  }
  stream.count({.ops = 1, .bytes = bytes});
  OCTET_LAUNCH(stream, adamw, a);
}

}  // namespace octet::ops
