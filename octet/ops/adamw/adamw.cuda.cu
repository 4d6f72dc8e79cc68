#include "octet/ops/adamw/adamw.kernels.hpp"
#include "octet/ops/adamw/adamw.math.hpp"
#include "octet/tensor/cuda/check.cuh"
#include "octet/tensor/cuda/lanes.cuh"

namespace octet::cuda {
namespace {

template <class P, class G, class M, int N>
__global__ void adamw_kernel(std::int64_t count, const ops::AdamWConstants c, std::uint64_t key, const ops::AdamWStep* step, const G* grad,
                             P* value, M* m, M* v) {
  const ops::AdamWStep s = *step;
  const std::int64_t at = (std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x) * N;
  if (s.skip != 0 || at >= count) return;
  ops::adamw_update(RowLanes<32, N>{}, at, c, s, grad, value, m, v, ops::AdamWDraws{key, s.updates, 0});
}

}  // namespace

void adamw(Queue queue, const ops::AdamW& a) {
  const std::int64_t count = a.value.count();
  if (count == 0) return;
  const ops::AdamWConstants constants(a);
  ops::with_adamw_types(a, [&]<class P, class G, class M>() {
    // Eight elements share their draws.
    constexpr int widest = sizeof(P) + sizeof(M) < 2 * sizeof(float) ? 8 : 4;
    const auto run = [&]<int N>() {
      constexpr int threads = 256;
      adamw_kernel<P, G, M, N><<<unsigned(ceil_div(count, threads * N)), threads, 0, queue>>>(
          count, constants, a.key, a.step.as<ops::AdamWStep>(), a.grad.as<G>(), a.value.as<P>(), a.moments.m.as<M>(), a.moments.v.as<M>());
    };
    if (count % widest == 0)
      run.template operator()<widest>();
    else
      run.template operator()<1>();
  });
  launched("adamw");
}

}  // namespace octet::cuda
