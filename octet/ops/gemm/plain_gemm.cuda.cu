#include "octet/ops/gemm/gemm.kernels.hpp"
#include "octet/ops/gemm/operand_view.cuh"
#include "octet/tensor/cuda/check.cuh"
#include "octet/tensor/cuda/pack.cuh"

// A GEMM for forms that cuBLASLt refuses: blocks of 16 x 16 results, operands decoded on load. One chain of fused multiply-adds per result,
// in order of k.

namespace octet::cuda {
namespace {

constexpr int side = 16;

template <class T>
__global__ void plain_kernel(std::int64_t first, std::int64_t M, std::int64_t N, std::int64_t K, OperandView a, OperandView b,
                             const float* bias, bool accumulate, T* d) {
  __shared__ float left[side][side + 1], right[side][side + 1];
  const int x = threadIdx.x, y = threadIdx.y;
  const std::int64_t m = first + std::int64_t(blockIdx.y) * side + y, n = std::int64_t(blockIdx.x) * side + x,
                     other = std::int64_t(blockIdx.x) * side + y;
  float sum = 0;
  for (std::int64_t k = 0; k < K; k += side) {
    left[y][x] = m < M && k + x < K ? a.at(m, k + x) : 0.0f;
    right[y][x] = other < N && k + x < K ? b.at(other, k + x) : 0.0f;
    __syncthreads();
    for (int i = 0; i < side; ++i) sum = fmaf(left[y][i], right[x][i], sum);
    __syncthreads();
  }
  if (m >= M || n >= N) return;
  if (bias != nullptr) sum += bias[n];
  store(d, m * N + n, Pack<1>{accumulate ? load<1>(d, m * N + n).v[0] + sum : sum});
}

template <class T>
__global__ void round_kernel(std::int64_t count, std::int64_t columns, const float* sums, float alpha, const float* bias, T* d) {
  const std::int64_t i = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) d[i] = from_float<T>(sums[i] * alpha + (bias != nullptr ? bias[i % columns] : 0.0f));
}

template <class T>
__global__ void add_kernel(std::int64_t count, std::int64_t columns, const float* sums, float alpha, const float* bias, T* d) {
  const std::int64_t i = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const float sum = sums[i] * alpha;
  store(d, i, Pack<1>{load<1>(d, i).v[0] + (bias != nullptr ? sum + bias[i % columns] : sum)});
}

}  // namespace

void plain_gemm(Queue queue, const ops::Gemm& g) {
  const std::int64_t M = g.d.shape[0], N = g.d.shape[1];
  const std::int64_t step = 65535 * std::int64_t(side);  // rows of one launch: a grid's second dimension ends there
  dispatch<float, Bf16, Fp16>(g.d.dtype, "gemm", [&]<class T>() {
    for (std::int64_t first = 0; first < M; first += step) {
      const dim3 grid(unsigned(ceil_div(N, side)), unsigned(ceil_div(M - first < step ? M - first : step, side)));
      plain_kernel<T><<<grid, dim3(side, side), 0, queue>>>(first, M, N, g.a.cols(), view_of(g.a), view_of(g.b), g.bias.f32(), g.accumulate,
                                                            g.d.as<T>());
    }
    launched("plain gemm");
  });
}

void round_sums(Queue queue, const Tensor& sums, float alpha, const float* bias, const Tensor& d) {
  constexpr int threads = 256;
  if (d.count() == 0) return;
  dispatch<Bf16, Fp16>(d.dtype, "round_sums", [&]<class T>() {
    round_kernel<<<unsigned(ceil_div(d.count(), threads)), threads, 0, queue>>>(d.count(), d.shape[1], sums.f32(), alpha, bias, d.as<T>());
  });
  launched("round_sums");
}

void add_sums(Queue queue, const Tensor& sums, float alpha, const float* bias, const Tensor& d) {
  constexpr int threads = 256;
  if (d.count() == 0) return;
  dispatch<float, Bf16, Fp16>(d.dtype, "add_sums", [&]<class T>() {
    add_kernel<<<unsigned(ceil_div(d.count(), threads)), threads, 0, queue>>>(d.count(), d.shape[1], sums.f32(), alpha, bias, d.as<T>());
  });
  launched("add_sums");
}

}  // namespace octet::cuda
