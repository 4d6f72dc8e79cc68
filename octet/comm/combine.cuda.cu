#include "octet/comm/combine.kernels.hpp"
#include "octet/comm/combine.math.hpp"
#include "octet/tensor/cuda/check.cuh"

namespace octet::cuda {
namespace {

constexpr int threads = 256;

struct Inputs {
  const void* at[comm::most_combined];
  int count;
};

// Packs of 16 bytes where all addresses allow it, else single values.
template <class T, int n>
struct alignas(n * sizeof(T)) Values {
  T v[n];
};

template <class T, int n>
__global__ void __launch_bounds__(threads) combine_kernel(Inputs in, T* to, std::int64_t packs) {
  for (std::int64_t p = std::int64_t(blockIdx.x) * threads + threadIdx.x; p < packs; p += std::int64_t(gridDim.x) * threads) {
    float sum[n];
    for (int r = 0; r < in.count; ++r) {
      const Values<T, n> x = static_cast<const Values<T, n>*>(in.at[r])[p];
#pragma unroll
      for (int i = 0; i < n; ++i) sum[i] = r == 0 ? comm::wide(x.v[i]) : sum[i] + comm::wide(x.v[i]);
    }
    Values<T, n> out;
#pragma unroll
    for (int i = 0; i < n; ++i) out.v[i] = comm::narrow<T>(sum[i]);
    reinterpret_cast<Values<T, n>*>(to)[p] = out;
  }
}

bool is_aligned(const void* at) { return reinterpret_cast<std::uintptr_t>(at) % 16 == 0; }

template <class T, int n>
void launch(Queue queue, const Inputs& in, const Tensor& to, std::int64_t first, std::int64_t packs) {
  if (packs == 0) return;
  Inputs at = in;
  for (int r = 0; r < in.count; ++r) at.at[r] = static_cast<const T*>(in.at[r]) + first;
  const unsigned blocks = unsigned(std::min<std::int64_t>(ceil_div(packs, std::int64_t(threads)), 4096));
  combine_kernel<T, n><<<blocks, threads, 0, queue>>>(at, to.as<T>() + first, packs);
  launched("combine");
}

template <class T>
void combine_as(Queue queue, const Inputs& in, const Tensor& to) {
  constexpr int n = 16 / sizeof(T);
  bool aligned = is_aligned(to.data);
  for (int r = 0; r < in.count; ++r) aligned = aligned && is_aligned(in.at[r]);
  const std::int64_t packs = aligned ? to.count() / n : 0;
  launch<T, n>(queue, in, to, 0, packs);
  launch<T, 1>(queue, in, to, packs * n, to.count() - packs * n);
}

}  // namespace

void combine_sums(Queue queue, const void* const* in, int inputs, const Tensor& to) {
  Inputs all{.at = {}, .count = inputs};
  for (int r = 0; r < inputs; ++r) all.at[r] = in[r];
  if (to.dtype == DType::bf16) combine_as<Bf16>(queue, all, to);
  else combine_as<float>(queue, all, to);
}

}  // namespace octet::cuda
