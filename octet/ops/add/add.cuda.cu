#include "octet/ops/add/add.kernels.hpp"
#include "octet/tensor/cuda/check.cuh"
#include "octet/tensor/cuda/pack.cuh"

namespace octet::cuda {
namespace {

template <class T, int N>
__global__ void add_kernel(std::int64_t packs, const T* a, const T* b, T* out) {
  const std::int64_t i = (std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x) * N;
  if (i < packs * N) store(out, i, load<N>(a, i) + load<N>(b, i));
}

}  // namespace

void add(Queue queue, const Tensor& a, const Tensor& b, const Tensor& out) {
  if (a.count() == 0) return;
  dispatch<float, Bf16, Fp16>(a.dtype, "add", [&]<class T>() {
    constexpr int threads = 256, N = 16 / int(sizeof(T));
    const std::int64_t packs = a.count() / N, rest = a.count() - packs * N;
    if (packs > 0) add_kernel<T, N><<<unsigned(ceil_div(packs, threads)), threads, 0, queue>>>(packs, a.as<T>(), b.as<T>(), out.as<T>());
    const std::int64_t at = packs * N;
    if (rest > 0) add_kernel<T, 1><<<1, 32, 0, queue>>>(rest, a.as<T>() + at, b.as<T>() + at, out.as<T>() + at);
    launched("add");
  });
}

}  // namespace octet::cuda
