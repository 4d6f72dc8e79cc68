#include <algorithm>

#include "octet/ops/adamw/adamw.kernels.hpp"
#include "octet/ops/stored/stored.hpp"

namespace octet::ops {
namespace {

void check_storage(const char* what, const Stored& s, bool StorageFacts::For::*allowed) {
  check(facts(s.storage).variables.*allowed, "adamw: {} cannot be stored as {}", what, name(s.storage));
  check_stored("adamw", s);
}

void check_parameter(const AdamWParameter& p) {
  const auto& [m, v] = p.moments;
  const Shape& shape = p.value.shape();
  check(p.first >= 0 && p.first % 8 == 0, "adamw: a slice begins at a multiple of 8, got {}", p.first);
  check(!p.places || (p.places.shape.rank == 2 && p.places.shape[1] == 4 && p.places.dtype == DType::i64),
        "adamw: places must be i64 [n, 4], got {} {}", p.places.dtype, p.places.shape);
  check(p.grad.shape() == shape && m.shape() == shape && v.shape() == shape, "adamw: grad, m and v must be {}, got {}, {} and {}", shape,
        p.grad.shape(), m.shape(), v.shape());
  using For = StorageFacts::For;
  check_storage("value", p.value, &For::masters), check_storage("grad", p.grad, &For::gradients);
  check_storage("m", m, &For::m), check_storage("v", v, &For::v);
  const bool needs_amax = scales_tensor(m.storage) || scales_tensor(v.storage);
  check(!needs_amax || (p.gradient_amax.shape == Shape{1} && p.gradient_amax.dtype == DType::f32),
        "adamw: gradient_amax must be f32 [1] for moments with a scale per tensor, got {} {}", p.gradient_amax.dtype,
        p.gradient_amax.shape);
}

bool scales_tensors(const AdamWParameter& p) {
  return scales_tensor(p.value.storage) || scales_tensor(p.moments.m.storage) || scales_tensor(p.moments.v.storage);
}

}  // namespace

void adamw(Stream& stream, const AdamW& a) {
  check(a.step.shape == Shape{adamw_step_floats} && a.step.dtype == DType::f32, "adamw: step must be f32 [{}], got {} {}",
        adamw_step_floats, a.step.dtype, a.step.shape);
  double bytes = 0;
  bool tensors = false;
  for (const AdamWParameter& p : a.parameters) {
    check_parameter(p);
    bytes += double(p.grad.bytes()) + 2.0 * double(p.value.bytes() + p.moments.m.bytes() + p.moments.v.bytes());
    tensors |= scales_tensors(p);
  }
  stream.count({.ops = 1, .bytes = bytes});
  const Scope scope(stream);
  const Tensor maxima =
      tensors ? stream.zeros({3 * std::int64_t(a.parameters.size())}, DType::f32, Lifetime::scratch, Category::workspace) : Tensor{};
  OCTET_LAUNCH(stream, adamw, a, maxima);
}

}  // namespace octet::ops
