#include "octet/ops/shared_scale/shared_scale.kernels.hpp"
#include "octet/ops/shared_scale/shared_scale.math.hpp"
#include "octet/tensor/cuda/check.cuh"
#include "octet/tensor/cuda/lanes.cuh"

namespace octet::cuda {
namespace {

constexpr int threads = 256;

__global__ void shared_scale_kernel(const ops::SharedScaleSlots slots) {
  if (*slots.skip != 0) return;
  float most = 0;
  for (std::int64_t i = threadIdx.x; i < slots.count; i += threads) most = octet::larger(slots.amax[i], most);
  most = block_fold<threads>(most, MaxFold{});
  for (std::int64_t i = threadIdx.x; i < slots.count; i += threads) slots.update(i, most);
}

}  // namespace

void update_shared_scale(Queue queue, const ops::SharedScale& a) {
  shared_scale_kernel<<<1, threads, 0, queue>>>(ops::SharedScaleSlots(a));
  launched("shared_scale");
}

}  // namespace octet::cuda
