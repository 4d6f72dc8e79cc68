#include "octet/ops/clip/clip.hpp"

#include "octet/ops/clip/clip.kernels.hpp"
#include "octet/ops/clip/clip.math.hpp"

namespace octet::ops {

void clip(Stream& stream, const Clip& a) {
  check(a.sum_of_squares.shape == Shape{1} && a.sum_of_squares.dtype == DType::f64, "clip: sum_of_squares must be f64 [1], got {} {}",
        a.sum_of_squares.dtype, a.sum_of_squares.shape);
  check(a.step.shape == Shape{adamw_step_floats} && a.step.dtype == DType::f32, "clip: step must be f32 [{}], got {} {}", adamw_step_floats,
        a.step.dtype, a.step.shape);
  check(a.max_norm >= 0, "clip: max_norm must be 0 or more, got {}", a.max_norm);
  check(!a.loss || a.loss.dtype == DType::f32, "clip: loss must be f32, got {}", a.loss.dtype);
  check(!a.nonfinite || a.nonfinite.dtype == DType::i64, "clip: nonfinite must be i64, got {}", a.nonfinite.dtype);
  for (const auto& [t, what] : {std::pair(a.gradient_factor, "gradient_factor"), {a.loss_scale, "loss_scale"}})
    check(!t || (t.shape == Shape{1} && t.dtype == DType::f32), "clip: {} must be f32 [1], got {} {}", what, t.dtype, t.shape);
  check(!a.limits || (a.limits.shape == Shape{2} && a.limits.dtype == DType::f32), "clip: limits must be f32 [2], got {} {}",
        a.limits.dtype, a.limits.shape);
  stream.count({.ops = 1, .bytes = double(sizeof(AdamWStep))});
  if (stream.device() == Device::cpu) clip_step(ClipValues(a));
  if (stream.device() == Device::cuda) OCTET_RUN_CUDA(clip, stream.queue(), a);
}

}  // namespace octet::ops
