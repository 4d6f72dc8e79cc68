#include "octet/ops/weighted_sum/weighted_sum.kernels.hpp"
#include "octet/ops/weighted_sum/weighted_sum.math.hpp"
#include "octet/tensor/cuda/check.cuh"
#include "octet/tensor/cuda/pack.cuh"

namespace octet::cuda {
namespace {

template <class X, class Out>
struct Values {
  const X *x, *y;
  Out* out;
  float a, b;
  const double* squares;
  const ops::AdamWStep* step;
};

template <class X, class Out, int N>
__global__ void weighted_sum_kernel(std::int64_t begin, std::int64_t end, Values<X, Out> v) {
  const std::int64_t i = begin + (std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x) * N;
  if (i >= end) return;
  const ops::WeightedSumFactors f = ops::factors_of(v.a, v.b, v.squares, v.step);
  if (v.y == nullptr || f.y_unread) store(v.out, i, load<N>(v.x, i) * f.x);
  else store(v.out, i, load<N>(v.x, i) * f.x + load<N>(v.y, i) * f.y);
}

template <int N, class X, class Out>
void run(Queue queue, std::int64_t begin, std::int64_t end, const Values<X, Out>& v) {
  constexpr int threads = 256;
  if (begin < end) weighted_sum_kernel<X, Out, N><<<unsigned(ceil_div((end - begin) / N, threads)), threads, 0, queue>>>(begin, end, v);
}

}  // namespace

void weighted_sum(Queue queue, const ops::WeightedSum& a) {
  const std::int64_t n = a.x.count();
  if (n == 0) return;
  dispatch<float, Bf16, Fp16>(a.x.dtype, "weighted_sum: x", [&]<class X>() {
    dispatch<float, Bf16, Fp16>(a.out.dtype, "weighted_sum: out", [&]<class Out>() {
      constexpr int N = 4;
      const Values<X, Out> v{a.x.as<X>(), a.y.as<X>(), a.out.as<Out>(), a.a, a.b, a.squares.as<double>(), a.step.as<ops::AdamWStep>()};
      bool aligned = true;  // matrices of one parameter may begin anywhere
      for (const Tensor* t : {&a.x, &a.y, &a.out}) aligned = aligned && reinterpret_cast<std::uintptr_t>(t->data) % 16 == 0;
      const std::int64_t packed = aligned ? n / N * N : 0;
      run<N>(queue, 0, packed, v), run<1>(queue, packed, n, v);
      launched("weighted_sum");
    });
  });
}

}  // namespace octet::cuda
