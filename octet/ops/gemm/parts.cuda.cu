#include "octet/numerics/bf16_parts.hpp"
#include "octet/ops/gemm/gemm.kernels.hpp"
#include "octet/tensor/cuda/check.cuh"
#include "octet/tensor/cuda/pack.cuh"

namespace octet::cuda {
namespace {

constexpr int threads = 256;

// Which parts are stored: digits from the last on. Those of both operands give the six largest of the nine products of parts.
template <int count_, unsigned digits>
struct PartOrder {
  static constexpr int count = count_;
  static __device__ constexpr int part(int i) { return int(digits >> 4 * i & 0xF); }
};
using Apart = PartOrder<3, 0x210>;
using OfLeft = PartOrder<6, 0x210100>;
using OfRight = PartOrder<6, 0x012010>;

// The i-th of a row begins at row * steps.row + i * steps.part.
struct PartSteps {
  std::int64_t row, part;
};

// N neighbouring values per thread.
template <int N, class Order>
__global__ void __launch_bounds__(threads)
    split_kernel(std::int64_t packs, std::int64_t cols, const float* from, Bf16* to, PartSteps steps) {
  const std::int64_t i = (std::int64_t(blockIdx.x) * threads + threadIdx.x) * N;
  if (i >= packs * N) return;
  const std::int64_t row = i / cols;
  const Pack<N> x = load<N>(from, i);
  Bf16Parts parts[N];
#pragma unroll
  for (int j = 0; j < N; ++j) parts[j] = bf16_parts(x.v[j]);
  Bf16* const at = to + row * steps.row + (i - row * cols);
#pragma unroll
  for (int p = 0; p < Order::count; ++p) {
    struct alignas(sizeof(Bf16) * N) Stored {
      Bf16 v[N];
    } part;
#pragma unroll
    for (int j = 0; j < N; ++j) part.v[j] = parts[j].part[Order::part(p)];
    *reinterpret_cast<Stored*>(at + p * steps.part) = part;
  }
}

template <class Order>
void split(Queue queue, const Tensor& from, const Tensor& to, PartSteps steps) {
  const std::int64_t n = from.count(), cols = from.shape[1];
  if (n == 0) return;
  const bool aligned = reinterpret_cast<std::uintptr_t>(from.data) % 16 == 0 && cols % 4 == 0;
  const auto blocks = [](std::int64_t packs) { return unsigned(ceil_div(packs, threads)); };
  if (aligned) split_kernel<4, Order><<<blocks(n / 4), threads, 0, queue>>>(n / 4, cols, from.f32(), to.as<Bf16>(), steps);
  else split_kernel<1, Order><<<blocks(n), threads, 0, queue>>>(n, cols, from.f32(), to.as<Bf16>(), steps);
  launched("split_f32");
}

}  // namespace

void split_f32(Queue queue, const Tensor& from, const Tensor& to) { split<Apart>(queue, from, to, {from.shape[1], from.count()}); }

void split_f32_along_k(Queue queue, const Quantized& from, bool left, const Tensor& to) {
  const std::int64_t cols = from.codes.shape[1];
  const PartSteps steps = from.transposed ? PartSteps{cols, from.codes.count()} : PartSteps{6 * cols, cols};
  if (left) split<OfLeft>(queue, from.codes, to, steps);
  else split<OfRight>(queue, from.codes, to, steps);
}

}  // namespace octet::cuda
