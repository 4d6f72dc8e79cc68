#include "octet/ops/clip/clip.hpp"

#include "octet/ops/clip/clip.math.hpp"

namespace octet::ops {

void clip(Stream& stream, const Clip& a) {
  check(a.sum_of_squares.shape == Shape{1} && a.sum_of_squares.dtype == DType::f64, "clip: sum_of_squares must be f64 [1], got {} {}",
        a.sum_of_squares.dtype, a.sum_of_squares.shape);
  check(a.step.shape == Shape{8} && a.step.dtype == DType::f32, "clip: step must be f32 [8], got {} {}", a.step.dtype, a.step.shape);
  check(a.max_norm >= 0, "clip: max_norm must be 0 or more, got {}", a.max_norm);
  check(!a.loss || a.loss.dtype == DType::f32, "clip: loss must be f32, got {}", a.loss.dtype);
  check(!a.nonfinite || a.nonfinite.dtype == DType::i64, "clip: nonfinite must be i64, got {}", a.nonfinite.dtype);
  check(!a.unscale || (a.unscale.shape == Shape{1} && a.unscale.dtype == DType::f32), "clip: unscale must be f32 [1], got {} {}",
        a.unscale.dtype, a.unscale.shape);
  stream.count({.ops = 1, .bytes = double(sizeof(AdamWStep))});
  if (stream.device() != Device::cpu) return;
  const bool skip = (a.loss && any_not_finite(a.loss.f32(), a.loss.count())) ||
                    (a.nonfinite && any_positive(a.nonfinite.as<std::int64_t>(), a.nonfinite.count()));
  clip_step(*a.sum_of_squares.as<double>(), a.unscale ? *a.unscale.f32() : 1.0f, a.max_norm, skip, *a.step.as<AdamWStep>());
}

}  // namespace octet::ops
