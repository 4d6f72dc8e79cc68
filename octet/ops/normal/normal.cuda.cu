#include "octet/ops/normal/normal.kernels.hpp"
#include "octet/ops/normal/normal.math.hpp"
#include "octet/tensor/cuda/check.cuh"
#include "octet/tensor/cuda/pack.cuh"

namespace octet::cuda {
namespace {

/// A thread makes the four values of a draw.
template <class T>
__global__ void normal_kernel(std::int64_t count, std::uint64_t key, float deviation, T* x, std::int64_t first_draw) {
  const std::int64_t draw = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x, first = 4 * draw;
  if (first >= count) return;
  const RandomWords r = philox(key, std::uint64_t(first_draw + draw));
  const auto one = ops::normal_pair(uniform(r.w[0]), uniform(r.w[1])), other = ops::normal_pair(uniform(r.w[2]), uniform(r.w[3]));
  const Pack<4> values = Pack<4>{one.first, one.second, other.first, other.second} * deviation;
  if (first + 4 <= count) return store(x, first, values);
#pragma unroll
  for (int i = 0; i < 3; ++i)
    if (first + i < count) store(x, first + i, Pack<1>{values.v[i]});
}

}  // namespace

void fill_normal(Queue queue, std::uint64_t key, float deviation, const Tensor& x, std::int64_t first) {
  constexpr int threads = 256;
  if (x.count() == 0) return;
  dispatch<float, Bf16>(x.dtype, "fill_normal", [&]<class T>() {
    normal_kernel<<<unsigned(ceil_div(x.count(), 4 * threads)), threads, 0, queue>>>(x.count(), key, deviation, x.as<T>(), first / 4);
  });
  launched("normal_kernel");
}

}  // namespace octet::cuda
