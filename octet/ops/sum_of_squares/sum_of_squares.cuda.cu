#include <algorithm>

#include "octet/ops/stored/cuda/group.cuh"
#include "octet/ops/sum_of_squares/sum_of_squares.kernels.hpp"
#include "octet/tensor/cuda/check.cuh"

namespace octet::cuda {
namespace {

constexpr int threads = 256;

// Some of the variables of one launch; its pieces are numbered through.
constexpr int most_variables = 60;
struct Variables {
  ops::StoredView x[most_variables];
  std::int64_t first_piece[most_variables + 1];
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
struct OwnSum {
  double squares = 0;
  float most = 0;

  __device__ __forceinline__ void add(float x) { squares += double(x) * double(x), most = octet::larger(octet::magnitude(x), most); }
  template <int N>
  __device__ __forceinline__ void add(const Pack<N>& p) {
#pragma unroll
    for (int j = 0; j < N; ++j) add(p.v[j]);
  }
};

template <class T>
__device__ __forceinline__ void add_plain(const T* x, std::int64_t n, OwnSum& sum) {
  constexpr int N = 4;
  std::int64_t i = threadIdx.x * N;
  for (; i + N <= n; i += threads * N) sum.add(load<N>(x, i));
  for (; i < n; ++i) sum.add(load<1>(x, i));  // at most N - 1 values of one thread
}

template <class Codec>
__device__ __forceinline__ void add_decoded(Codec codec, const ops::StoredView& x, std::int64_t begin, std::int64_t n, OwnSum& sum) {
  const GroupLanes lanes;
  const std::int64_t end = ops::groups_of(begin + n);
  for (std::int64_t group = begin / storage_block + threadIdx.x / GroupLanes::threads; group < end;
       group += threads / GroupLanes::threads) {
    const auto scalars = codec.stored(x, group);
    lanes.each_pack(x.count, group, [&](int, auto at) { sum.add(codec.decode(lanes, x, scalars, at)); });
  }
}

template <class T>
__device__ __forceinline__ void add_decoded(ops::PlainCodec<T>, const ops::StoredView& x, std::int64_t begin, std::int64_t n, OwnSum& sum) {
  add_plain(x.as<T>() + begin, n, sum);
}

__device__ __forceinline__ OwnSum own_sum(const ops::StoredView& x, std::int64_t begin, std::int64_t n) {
  OwnSum sum;
  ops::with_codec(x.storage, [&](auto codec) { add_decoded(codec, x, begin, n, sum); });
  return sum;
}

// A block for each piece.
__global__ void piece_kernel(const __grid_constant__ Variables t, double* sums, float* maxima) {
  int low = 0, high = t.n;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    if (t.first_piece[middle] <= blockIdx.x) low = middle;
    else high = middle;
  }
  const std::int64_t begin = (blockIdx.x - t.first_piece[low]) * ops::sum_piece_values;
  const OwnSum own = own_sum(t.x[low], begin, min(t.x[low].count - begin, ops::sum_piece_values));
  const double sum = block_sum(own.squares);
  const float most = block_fold<threads>(own.most, MaxFold{});
  if (threadIdx.x == 0) sums[blockIdx.x] = sum, maxima[blockIdx.x] = most;
}

// Where the sums and maxima of all variables go, from the first of a launch on.
struct Results {
  double *sums, *increments;
  float* maxima;  // or null
  bool accumulate;
};

// A block for each variable: sums[i] (+)= its pieces.
__global__ void variable_kernel(const __grid_constant__ Variables t, const double* sums, const float* maxima, const Results out) {
  OwnSum own;
  for (std::int64_t p = t.first_piece[blockIdx.x] + threadIdx.x; p < t.first_piece[blockIdx.x + 1]; p += threads)
    own.squares += sums[p], own.most = octet::larger(maxima[p], own.most);
  const double sum = block_sum(own.squares);
  const float most = block_fold<threads>(own.most, MaxFold{});
  if (threadIdx.x != 0) return;
  out.sums[blockIdx.x] = sum + (out.accumulate ? out.sums[blockIdx.x] : 0), out.increments[blockIdx.x] = sum;
  if (out.maxima) out.maxima[blockIdx.x] = octet::larger(most, out.accumulate ? out.maxima[blockIdx.x] : 0.0f);
}

__global__ void total_kernel(const double* increments, std::int64_t n, double* total, bool accumulate) {
  double sum = 0;
  for (std::int64_t i = threadIdx.x; i < n; i += threads) sum += increments[i];
  sum = block_sum(sum);
  if (threadIdx.x == 0) *total = sum + (accumulate ? *total : 0);
}

}  // namespace

void sum_of_squares(Queue queue, const ops::SumOfSquares& a, const ops::SumPartial& partial) {
  const std::size_t n = a.x.size();
  // One sum for each piece, then one for each variable.
  double* sums = partial.sums.as<double>();
  float* maxima = partial.maxima.f32();
  double* const increments = sums + (partial.sums.count() - std::int64_t(n));
  for (std::size_t begin = 0; begin < n; begin += most_variables) {
    Variables t{};
    t.n = int(std::min<std::size_t>(most_variables, n - begin));
    for (int i = 0; i < t.n; ++i) {
      t.x[i] = ops::view_of(a.x[begin + std::size_t(i)]);
      t.first_piece[i + 1] = t.first_piece[i] + ceil_div(t.x[i].count, ops::sum_piece_values);
    }
    const std::int64_t pieces = t.first_piece[t.n];
    if (pieces > 0) piece_kernel<<<unsigned(pieces), threads, 0, queue>>>(t, sums, maxima);
    const Results out{a.sums.as<double>() + begin, increments + begin, a.maxima ? a.maxima.f32() + begin : nullptr, a.accumulate};
    variable_kernel<<<unsigned(t.n), threads, 0, queue>>>(t, sums, maxima, out);
    sums += pieces, maxima += pieces;
  }
  if (a.total) total_kernel<<<1, threads, 0, queue>>>(increments, std::int64_t(n), a.total.as<double>(), a.accumulate);
  launched("sum_of_squares");
}

}  // namespace octet::cuda
