#include "octet/ops/cross_entropy/cross_entropy.kernels.hpp"
#include "octet/ops/cross_entropy/cross_entropy.math.hpp"
#include "octet/tensor/cuda/check.cuh"
#include "octet/tensor/cuda/lanes.cuh"

namespace octet::cuda {
namespace {

struct Chunk {
  std::int64_t columns, vocabulary;
  const std::int32_t* targets;
  float* losses;
  float gradient_scale;
  bool gradient;
};

template <int threads, class T>
__device__ void clear_columns(T* x, std::int64_t begin, std::int64_t end) {
  for (std::int64_t c = begin + threadIdx.x; c < end; c += threads) x[c] = T{};
}

// ops::row_softmax in one reading: each thread keeps the largest value so far and the sum relative to it.
template <int threads, int N, class T>
__device__ ops::RowSoftmax<float> softmax_in_one_pass(const T* x, std::int64_t vocabulary) {
  float most = -INFINITY, sum = 0;
#pragma unroll 2
  for (std::int64_t i = threadIdx.x * N; i < vocabulary; i += threads * N) {
    const Pack<N> v = load<N>(x, i);
    const float top = largest_of(v);
    if (top > most) sum *= math::exp(most - top), most = top;
    sum += sum_of(exp(v - most));
  }
  const float top = block_fold<threads>(most, MaxFold{});
  return {top, block_fold<threads>(most == top ? sum : sum * math::exp(most - top), SumFold{})};
}

// A block for each token. Few blocks at a time, whose rows fit into the L2 cache together, so that the second reading comes from there.
template <class T, int threads, int N>
__global__ void __launch_bounds__(threads) cross_entropy_kernel(const Chunk a, T* logits) {
  const RowLanes<threads, N> lanes;
  T* const x = logits + blockIdx.x * a.columns;
  const std::int64_t target = a.targets[blockIdx.x];
  if (target == -1) {
    if (a.gradient) clear_columns<threads>(x, 0, a.columns);
    if (lanes.first()) a.losses[blockIdx.x] = 0;
    return;
  }
  const bool known = target >= 0 && target < a.vocabulary;
  const float logit = known ? load<1>(x, target).v[0] : __int_as_float(0x7FC00000);
  const auto row = softmax_in_one_pass<threads, N>(x, a.vocabulary);
  if (lanes.first()) a.losses[blockIdx.x] = ops::cross_entropy_loss(row, logit);
  if (!a.gradient) return;
  ops::scaled_softmax(lanes, a.vocabulary, row, a.gradient_scale, x);
  clear_columns<threads>(x, a.vocabulary, a.columns);
  __syncthreads();
  // From the unrounded softmax: p - 1 must not cancel what BF16 has left of p.
  if (known && lanes.first()) store(x, target, Pack<1>{(math::exp(logit - row.most) / row.sum - 1.0f) * a.gradient_scale});
}

constexpr int sum_threads = 256;

__global__ void loss_sum_kernel(std::int64_t rows, const float* losses, const std::int32_t* targets, double* loss_sum, std::int64_t* counted) {
  __shared__ double sums[sum_threads];
  __shared__ int counts[sum_threads];
  double sum = 0;
  int count = 0;
  for (std::int64_t t = threadIdx.x; t < rows; t += sum_threads) sum += double(losses[t]), count += targets[t] != -1;
  sums[threadIdx.x] = sum, counts[threadIdx.x] = count;
  __syncthreads();
  for (int half = sum_threads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half], counts[threadIdx.x] += counts[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) *loss_sum += sums[0], *counted += counts[0];
}

__global__ void mean_loss_kernel(const double* sum, const std::int64_t* counted, float* mean) { *mean = float(*sum / double(*counted)); }

}  // namespace

void cross_entropy(Queue queue, const ops::CrossEntropy& a) {
  const std::int64_t rows = a.logits.shape[0], columns = a.logits.shape[1];
  if (rows == 0) return;
  const auto* const targets = a.targets.as<std::int32_t>();
  const Chunk chunk{columns, a.vocabulary, targets, a.losses.f32(), a.gradient_scale, a.gradient};
  dispatch<float, Bf16>(a.logits.dtype, "cross_entropy", [&]<class T>() {
    const auto launch = [&]<int threads, int N>() {
      // Long rows: shared memory that nobody uses keeps a second block off a multiprocessor.
      const int unused = threads == 1024 ? 120 * 1024 : 0;
      allow_shared(cross_entropy_kernel<T, threads, N>, unused);
      cross_entropy_kernel<T, threads, N><<<unsigned(rows), threads, unsigned(unused), queue>>>(chunk, a.logits.as<T>());
    };
    with_pack<T>(columns % 8 == 0 ? a.vocabulary : 1, [&]<int N>() {
      if (a.vocabulary <= 4096) launch.template operator()<128, N>();
      else launch.template operator()<1024, N>();
    });
  });
  loss_sum_kernel<<<1, sum_threads, 0, queue>>>(rows, a.losses.f32(), targets, a.loss_sum.as<double>(), a.counted.as<std::int64_t>());
  launched("cross_entropy");
}

void mean_loss(Queue queue, const double* sum, const std::int64_t* counted, float* mean) {
  mean_loss_kernel<<<1, 1, 0, queue>>>(sum, counted, mean);
  launched("mean_loss");
}

}  // namespace octet::cuda
