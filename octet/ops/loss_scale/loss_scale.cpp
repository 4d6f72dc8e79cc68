#include "octet/ops/loss_scale/loss_scale.hpp"

#include "octet/ops/loss_scale/loss_scale.kernels.hpp"
#include "octet/ops/loss_scale/loss_scale.math.hpp"

namespace octet::ops {

void move_loss_scale(Stream& stream, const LossScale& a) {
  check(a.state.shape == Shape{loss_scale_floats} && a.state.dtype == DType::f32, "loss_scale: state must be f32 [{}], got {} {}",
        loss_scale_floats, a.state.dtype, a.state.shape);
  check(a.skip.shape == Shape{1} && a.skip.dtype == DType::f32, "loss_scale: skip must be f32 [1], got {} {}", a.skip.dtype, a.skip.shape);
  stream.count({.ops = 1, .bytes = double(sizeof(LossScaleState))});
  if (stream.device() == Device::cpu) {
    LossScaleState& state = *a.state.as<LossScaleState>();
    state = moved(state, a.rule, *a.skip.f32());
  }
  if (stream.device() == Device::cuda) OCTET_RUN_CUDA(move_loss_scale, stream.queue(), a);
}

}  // namespace octet::ops
