#include "octet/ops/loss_scale/loss_scale.kernels.hpp"
#include "octet/ops/loss_scale/loss_scale.math.hpp"
#include "octet/tensor/cuda/check.cuh"

namespace octet::cuda {
namespace {

__global__ void loss_scale_kernel(ops::LossScaleRule rule, const float* skip, ops::LossScaleState* state) {
  *state = ops::moved(*state, rule, *skip);
}

}  // namespace

void move_loss_scale(Queue queue, const ops::LossScale& a) {
  loss_scale_kernel<<<1, 1, 0, queue>>>(a.rule, a.skip.f32(), a.state.as<ops::LossScaleState>());
  launched("loss_scale_kernel");
}

}  // namespace octet::cuda
