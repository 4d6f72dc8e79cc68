#include "octet/ops/adamw/adamw.kernels.hpp"
#include "octet/ops/adamw/adamw.math.hpp"
#include "octet/tensor/cuda/check.cuh"
#include "octet/tensor/cuda/lanes.cuh"

namespace octet::cuda {
namespace {

template <class M, class V, int N>
__global__ void adamw_kernel(std::int64_t count, const ops::AdamWConstants c, const ops::AdamWStep* step, const float* grad, float* value, M* m, V* v) {
  const ops::AdamWStep s = *step;
  const std::int64_t at = (std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x) * N;
  if (s.skip != 0 || at >= count) return;
  ops::adamw_update(RowLanes<32, N>{}, at, c, s, grad, value, m, v);
}

}  // namespace

void adamw(Queue queue, const ops::AdamW& a) {
  const std::int64_t count = a.value.count();
  if (count == 0) return;
  const ops::AdamWConstants constants(a);
  dispatch<float>(a.moments.m.dtype, "adamw: m", [&]<class M>() {
    dispatch<float>(a.moments.v.dtype, "adamw: v", [&]<class V>() {
      with_pack<float>(count, [&]<int N>() {
        constexpr int threads = 256;
        adamw_kernel<M, V, N><<<unsigned(ceil_div(count, threads * N)), threads, 0, queue>>>(count, constants, a.step.as<ops::AdamWStep>(), a.grad.f32(),
                                                                                        a.value.f32(), a.moments.m.as<M>(), a.moments.v.as<V>());
      });
    });
  });
  launched("adamw");
}

}  // namespace octet::cuda
