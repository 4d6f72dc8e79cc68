#include <cooperative_groups.h>
#include <cuda_pipeline.h>

#include "octet/ops/cross_entropy/cross_entropy.kernels.hpp"
#include "octet/ops/cross_entropy/cross_entropy.math.hpp"
#include "octet/tensor/cuda/check.cuh"
#include "octet/tensor/cuda/lanes.cuh"

namespace octet::cuda {
namespace {

namespace groups = cooperative_groups;

struct Chunk {
  std::int64_t columns, vocabulary;
  const std::int32_t* targets;
  float* losses;
  float gradient_scale;
  const float *loss_scale, *weights;
  bool gradient;
};

// e^x by the GPU's own power of two, which is within 2^-22: with the rounding of its argument within (4 + 1.5 |x|) 2^-24 of itself, so for
// x <= 0 within 5 * 2^-24; 0 below 2^-126. A row's sum is added in another order than on the CPU: the bits differ anyway.
__device__ __forceinline__ float quick_exp(float x) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x * 0x1.715476p0f));
  return power;
}

// A pack whose exponential is that.
template <int N>
struct QuickPack : Pack<N> {
  QuickPack() = default;
  __device__ __forceinline__ explicit QuickPack(const Pack<N>& p) : Pack<N>(p) {}
};
template <int N>
__device__ __forceinline__ Pack<N> exp_nonpositive(const QuickPack<N>& x) {
  return map(static_cast<const Pack<N>&>(x), [](float v) { return quick_exp(v); });
}

template <int threads, int N>
struct QuickLanes : RowLanes<threads, N> {
  using Value = QuickPack<N>;
};

// A row is shared by the blocks of a cluster: this block's part of it.
template <class T>
struct Slice {
  T* x;
  std::int64_t vocabulary, columns;  // how many of its columns are logits, and all
};

__device__ std::int64_t part_of(std::int64_t all, std::int64_t begin, std::int64_t length) {
  return all <= begin ? 0 : all - begin < length ? all - begin : length;
}

// Copies a slice into shared memory in packs: each thread later reads its own copies. A last pack is filled up with what has probability 0;
// returns how many values there are with it.
template <int threads, int N, class T>
__device__ std::int64_t fetch(const Slice<T>& slice, T* kept) {
  static_assert(N * sizeof(T) == 16);
  const std::int64_t n = ceil_div(slice.vocabulary, N) * N;
  for (std::int64_t i = threadIdx.x * N; i < n; i += threads * N) __pipeline_memcpy_async(kept + i, slice.x + i, 16);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  if (threadIdx.x == slice.vocabulary / N % threads)
    for (std::int64_t i = slice.vocabulary; i < n; ++i) store(kept, i, Pack<1>{-INFINITY});
  return n;
}

// ops::row_softmax of n logits in one reading: each thread keeps the largest value so far and the sum relative to it.
template <int threads, int N, class T>
__device__ ops::RowSoftmax<float> softmax_in_one_pass(const T* x, std::int64_t n) {
  float most = -0x1.fffffep127f, sum = 0;  // finite, for logits that are all -infinity
#pragma unroll 2
  for (std::int64_t i = threadIdx.x * N; i < n; i += threads * N) {
    const Pack<N> v = load<N>(x, i);
    float top = most;
#pragma unroll
    for (int j = 0; j < N; ++j) top = fmaxf(v.v[j], top);
    if (top > most) sum *= quick_exp(most - top), most = top;
    sum += sum_of(exp_nonpositive(QuickPack<N>(v - most)));
  }
  const float top = block_fold<threads>(most, MaxFold{});
  return {top, block_fold<threads>(most == top ? sum : sum * quick_exp(most - top), SumFold{})};
}

// That of the row, from those of a cluster's blocks: each warp reads them all.
__device__ ops::RowSoftmax<float> softmax_of_cluster(const groups::cluster_group& cluster, ops::RowSoftmax<float>& mine) {
  const unsigned lane = threadIdx.x % 32;
  ops::RowSoftmax<float> part{-INFINITY, 0};
  if (lane < cluster.num_blocks()) part = *cluster.map_shared_rank(&mine, lane);
  const float top = warp_max(part.most);
  return {top, warp_sum(part.most == top ? part.sum : part.sum * quick_exp(part.most - top))};
}

// A cluster of blocks for each token. Logits are read once: `keep`: a slice stays in shared memory for its second use.
template <class T, int threads, int N, bool keep>
__global__ void __launch_bounds__(threads) cross_entropy_kernel(const Chunk a, T* logits) {
  extern __shared__ uint4 shared[];
  __shared__ ops::RowSoftmax<float> mine;
  const groups::cluster_group cluster = groups::this_cluster();
  const std::int64_t token = blockIdx.x / cluster.num_blocks(), length = ceil_div(ceil_div(a.columns, N), cluster.num_blocks()) * N;
  const std::int64_t begin = cluster.block_rank() * length, columns = part_of(a.columns, begin, length);
  const Slice<T> slice{logits + token * a.columns + begin, part_of(a.vocabulary, begin, length), columns};
  const std::int64_t target = a.targets[token];
  const bool first = threadIdx.x == 0;
  if (target == -1) {
    if (a.gradient)
      for (std::int64_t c = threadIdx.x; c < slice.columns; c += threads) slice.x[c] = T{};
    if (first && cluster.block_rank() == 0) a.losses[token] = 0;
    return;
  }
  const bool known = target >= 0 && target < a.vocabulary, here = known && target >= begin && target < begin + length;
  const float logit = known ? load<1>(logits + token * a.columns, target).v[0] : __int_as_float(0x7FC00000);
  T* x = slice.x;
  std::int64_t n = slice.vocabulary;
  if constexpr (keep) x = reinterpret_cast<T*>(shared), n = fetch<threads, N>(slice, x);
  const auto part = softmax_in_one_pass<threads, N>(x, n);
  if (first) mine = part;
  cluster.sync();  // and the logit has been read
  const auto row = softmax_of_cluster(cluster, mine);
  auto read = cluster.barrier_arrive();
  if (first && cluster.block_rank() == 0) a.losses[token] = ops::cross_entropy_loss(row, logit);
  if (a.gradient) {
    const float factor = ops::gradient_factor(a.gradient_scale, a.loss_scale, a.weights, token);
    ops::scaled_softmax(QuickLanes<threads, N>{}, n, row, factor, x, slice.x);
    for (std::int64_t c = n + threadIdx.x; c < slice.columns; c += threads) slice.x[c] = T{};
    __syncthreads();
    // From the unrounded softmax: p - 1 must not cancel the bits of p that BF16 keeps.
    if (here && first) store(slice.x, target - begin, Pack<1>{(quick_exp(logit - row.most) / row.sum - 1.0f) * factor});
  }
  cluster.barrier_wait(std::move(read));
}

constexpr int part_threads = 256;

// A block for each token of one owner's columns.
template <class T, int N>
__global__ void __launch_bounds__(part_threads) logit_statistics_kernel(std::int64_t columns, std::int64_t vocabulary, std::int64_t first,
                                                                        const std::int32_t* targets, const T* logits, float* statistics) {
  const T* const x = logits + blockIdx.x * columns;
  const auto row = softmax_in_one_pass<part_threads, N>(x, vocabulary / N * N);
  if (threadIdx.x > 0) return;
  ops::RowSoftmax<float> all = row;
  for (std::int64_t c = vocabulary / N * N; c < vocabulary; ++c) {
    const float v = load<1>(x, c).v[0], top = fmaxf(v, all.most);
    all = {top, all.sum * quick_exp(all.most - top) + quick_exp(v - top)};
  }
  const std::int64_t column = targets[blockIdx.x] - first;
  float* const out = statistics + blockIdx.x * 3;
  out[0] = all.most, out[1] = all.sum;
  out[2] = column >= 0 && column < vocabulary ? load<1>(x, column).v[0] : __int_as_float(0x7FC00000);
}

// The same with the statistics of all owners: the loss, and the gradient of the own columns.
template <class T, int N>
__global__ void __launch_bounds__(part_threads)
    cross_entropy_of_parts_kernel(const Chunk a, std::int64_t first, const float* parts, std::int64_t owners, T* logits) {
  T* const x = logits + blockIdx.x * a.columns;
  const std::int64_t target = a.targets[blockIdx.x], column = target - first;
  if (target == -1) {
    if (a.gradient)
      for (std::int64_t c = threadIdx.x; c < a.columns; c += part_threads) x[c] = T{};
    if (threadIdx.x == 0) a.losses[blockIdx.x] = 0;
    return;
  }
  const ops::JoinedRow joined = ops::joined_row(parts, owners, gridDim.x, blockIdx.x);
  if (threadIdx.x == 0) a.losses[blockIdx.x] = ops::cross_entropy_loss(joined.softmax, joined.logit);
  if (!a.gradient) return;
  const float factor = ops::gradient_factor(a.gradient_scale, a.loss_scale, a.weights, blockIdx.x);
  ops::scaled_softmax(QuickLanes<part_threads, N>{}, a.vocabulary, joined.softmax, factor, x, x);
  for (std::int64_t c = a.vocabulary + threadIdx.x; c < a.columns; c += part_threads) x[c] = T{};
  __syncthreads();
  if (threadIdx.x == 0 && column >= 0 && column < a.vocabulary)
    store(x, column, Pack<1>{(quick_exp(joined.logit - joined.softmax.most) / joined.softmax.sum - 1.0f) * factor});
}

constexpr int sum_threads = 256;

__global__ void loss_sum_kernel(std::int64_t rows, const float* losses, const std::int32_t* targets, double* loss_sum,
                                std::int64_t* counted) {
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

/// Values of a row that a block keeps in shared memory: two blocks per multiprocessor.
template <class T>
constexpr std::int64_t most_kept = 100 * 1024 / std::int64_t(sizeof(T));

template <class T, int threads>
void run(Queue queue, const Chunk& chunk, const Tensor& logits, int blocks_a_row) {
  const auto launch = [&]<int N, bool keep>() {
    const auto kernel = cross_entropy_kernel<T, threads, N, keep>;
    const int shared = keep ? int(ceil_div(ceil_div(chunk.columns, N), blocks_a_row)) * 16 : 0;
    allow_shared(kernel, shared + 1024);  // its own counts too
    cudaLaunchAttribute cluster{.id = cudaLaunchAttributeClusterDimension};
    cluster.val.clusterDim = {unsigned(blocks_a_row), 1, 1};
    const cudaLaunchConfig_t config{.gridDim = dim3(unsigned(logits.shape[0]) * unsigned(blocks_a_row)),
                                    .blockDim = dim3(threads),
                                    .dynamicSmemBytes = std::size_t(shared),
                                    .stream = queue,
                                    .attrs = &cluster,
                                    .numAttrs = 1};
    require(cudaLaunchKernelEx(&config, kernel, chunk, logits.as<T>()), "cross_entropy_kernel");
  };
  constexpr std::int64_t widest = 16 / sizeof(T);
  const bool packs = chunk.columns % 8 == 0;
  if (chunk.gradient && packs && chunk.columns <= blocks_a_row * most_kept<T>) launch.template operator()<widest, true>();
  else with_pack<T>(packs ? chunk.vocabulary : 1, [&]<int N>() { launch.template operator()<N, false>(); });
}

}  // namespace

void cross_entropy(Queue queue, const ops::CrossEntropy& a) {
  const std::int64_t rows = a.logits.shape[0], columns = a.logits.shape[1];
  if (rows == 0) return;
  const auto* const targets = a.targets.as<std::int32_t>();
  const Chunk chunk{columns, a.vocabulary, targets, a.losses.f32(), a.gradient_scale, a.loss_scale.f32(), a.weights.f32(), a.gradient};
  dispatch<float, Bf16, Fp16>(a.logits.dtype, "cross_entropy", [&]<class T>() {
    if (a.parts)
      with_pack<T>(columns % 8 == 0 ? a.vocabulary : 1, [&]<int N>() {
        cross_entropy_of_parts_kernel<T, N>
            <<<unsigned(rows), part_threads, 0, queue>>>(chunk, a.first, a.parts.f32(), a.parts.shape[0] / rows, a.logits.as<T>());
      });
    else if (a.vocabulary <= 4096) run<T, 128>(queue, chunk, a.logits, 1);
    else if (columns <= 4 * most_kept<T>) run<T, 512>(queue, chunk, a.logits, 4);
    else run<T, 512>(queue, chunk, a.logits, 8);
  });
  loss_sum_kernel<<<1, sum_threads, 0, queue>>>(rows, a.losses.f32(), targets, a.loss_sum.as<double>(), a.counted.as<std::int64_t>());
  launched("cross_entropy");
}

void logit_statistics(Queue queue, const ops::LogitStatistics& a) {
  const std::int64_t rows = a.logits.shape[0], columns = a.logits.shape[1];
  if (rows == 0) return;
  dispatch<float, Bf16, Fp16>(a.logits.dtype, "logit_statistics", [&]<class T>() {
    with_pack<T>(columns % 8 == 0 ? columns : 1, [&]<int N>() {
      logit_statistics_kernel<T, N><<<unsigned(rows), part_threads, 0, queue>>>(
          columns, a.vocabulary, a.first, a.targets.as<std::int32_t>(), a.logits.as<T>(), a.statistics.f32());
    });
  });
  launched("logit_statistics");
}

void mean_loss(Queue queue, const double* sum, const std::int64_t* counted, float* mean) {
  mean_loss_kernel<<<1, 1, 0, queue>>>(sum, counted, mean);
  launched("mean_loss");
}

}  // namespace octet::cuda
