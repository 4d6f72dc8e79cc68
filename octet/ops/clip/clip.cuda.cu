#include "octet/ops/clip/clip.kernels.hpp"
#include "octet/ops/clip/clip.math.hpp"
#include "octet/tensor/cuda/check.cuh"

namespace octet::cuda {
namespace {

__global__ void clip_kernel(const ops::ClipValues a) { ops::clip_step(a); }

}  // namespace

void clip(Queue queue, const ops::Clip& a) {
  clip_kernel<<<1, 1, 0, queue>>>(ops::ClipValues(a));
  launched("clip");
}

}  // namespace octet::cuda
