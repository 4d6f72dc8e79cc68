#include <algorithm>

#include "octet/ops/sum_of_squares/sum_of_squares.kernels.hpp"
#include "octet/tensor/cuda/check.cuh"
#include "octet/tensor/cuda/pack.cuh"

namespace octet::cuda {
namespace {

constexpr int threads = 256;

// Some of the tensors of one launch; its pieces are numbered through.
constexpr int most_tensors = 120;
struct Tensors {
  const void* data[most_tensors];
  bool is_bf16[most_tensors];
  std::int64_t count[most_tensors];
  std::int64_t first_piece[most_tensors + 1];
  int n;
};

__device__ double block_sum(double x) {
  __shared__ double parts[threads];
  __syncthreads();
  parts[threadIdx.x] = x;
  __syncthreads();
  for (int half = threads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) parts[threadIdx.x] += parts[threadIdx.x + half];
    __syncthreads();
  }
  return parts[0];
}

// One thread's part of a piece.
template <class T>
__device__ double own_sum(const T* x, std::int64_t n) {
  constexpr int N = 4;
  double sum = 0;
  std::int64_t i = threadIdx.x * N;
  for (; i + N <= n; i += threads * N) {
    const Pack<N> p = load<N>(x, i);
#pragma unroll
    for (int j = 0; j < N; ++j) sum += double(p.v[j]) * double(p.v[j]);
  }
  for (; i < n; ++i) {  // at most N - 1 values of one thread
    const double v = load<1>(x, i).v[0];
    sum += v * v;
  }
  return sum;
}

// A block for each piece.
__global__ void piece_kernel(const __grid_constant__ Tensors t, double* partial) {
  int low = 0, high = t.n;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    if (t.first_piece[middle] <= blockIdx.x) low = middle;
    else high = middle;
  }
  const std::int64_t begin = (blockIdx.x - t.first_piece[low]) * ops::sum_piece_values;
  const std::int64_t n = min(t.count[low] - begin, ops::sum_piece_values);
  const double sum = block_sum(t.is_bf16[low] ? own_sum(static_cast<const Bf16*>(t.data[low]) + begin, n)
                                              : own_sum(static_cast<const float*>(t.data[low]) + begin, n));
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

// A block for each tensor: sums[i] (+)= its pieces.
__global__ void tensor_kernel(const __grid_constant__ Tensors t, const double* partial, double* sums, double* increments, bool accumulate) {
  double sum = 0;
  for (std::int64_t p = t.first_piece[blockIdx.x] + threadIdx.x; p < t.first_piece[blockIdx.x + 1]; p += threads) sum += partial[p];
  sum = block_sum(sum);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum + (accumulate ? sums[blockIdx.x] : 0), increments[blockIdx.x] = sum;
}

__global__ void total_kernel(const double* increments, std::int64_t n, double* total, bool accumulate) {
  double sum = 0;
  for (std::int64_t i = threadIdx.x; i < n; i += threads) sum += increments[i];
  sum = block_sum(sum);
  if (threadIdx.x == 0) *total = sum + (accumulate ? *total : 0);
}

}  // namespace

void sum_of_squares(Queue queue, const ops::SumOfSquares& a, const Tensor& partial) {
  const std::size_t n = a.x.size();
  // One sum for each piece, then one for each tensor.
  double* next = partial.as<double>();
  double* const increments = partial.as<double>() + (partial.count() - std::int64_t(n));
  for (std::size_t begin = 0; begin < n; begin += most_tensors) {
    Tensors t{};
    t.n = int(std::min<std::size_t>(most_tensors, n - begin));
    for (int i = 0; i < t.n; ++i) {
      const Tensor& x = a.x[begin + std::size_t(i)];
      t.data[i] = x.data, t.is_bf16[i] = x.dtype == DType::bf16, t.count[i] = x.count();
      t.first_piece[i + 1] = t.first_piece[i] + ceil_div(x.count(), ops::sum_piece_values);
    }
    const std::int64_t pieces = t.first_piece[t.n];
    if (pieces > 0) piece_kernel<<<unsigned(pieces), threads, 0, queue>>>(t, next);
    tensor_kernel<<<unsigned(t.n), threads, 0, queue>>>(t, next, a.sums.as<double>() + begin, increments + begin, a.accumulate);
    next += pieces;
  }
  if (a.total) total_kernel<<<1, threads, 0, queue>>>(increments, std::int64_t(n), a.total.as<double>(), a.accumulate);
  launched("sum_of_squares");
}

}  // namespace octet::cuda
