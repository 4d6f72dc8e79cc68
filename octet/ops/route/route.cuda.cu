#include "octet/ops/route/route.kernels.hpp"
#include "octet/ops/route/route.math.hpp"
#include "octet/tensor/cuda/check.cuh"
#include "octet/tensor/cuda/queue.hpp"

namespace octet::cuda {
namespace {

constexpr int threads = 256, tokens_a_block = threads / 32;

/// A warp has a token: see ops::WholeToken, whose bits these are.
struct WarpToken {
  __device__ __forceinline__ int lane() const { return int(threadIdx.x % 32); }

  template <class F>
  __device__ __forceinline__ void each(std::int64_t n, const F& f) const {
    for (std::int64_t i = lane(); i < n; i += 32) f(i);
  }
  template <class F>
  __device__ __forceinline__ float sum(std::int64_t n, const F& f) const {
    float part = 0;
    for (std::int64_t i = lane(); i < n; i += 32) part = part + f(i);
#pragma unroll
    for (int step = 16; step > 0; step /= 2) part = part + __shfl_xor_sync(~0u, part, step);
    return part;
  }
  template <class F>
  __device__ __forceinline__ bool any(std::int64_t n, const F& f) const {
    bool found = false;
    for (std::int64_t i = lane(); i < n; i += 32) found |= f(i);
    return __any_sync(~0u, found);
  }
  template <class F>
  __device__ __forceinline__ ops::Candidate<float> next(std::int64_t n, const ops::Candidate<float>& last, const F& f) const {
    ops::Candidate<float> best{-__builtin_inff(), n};
    for (std::int64_t i = lane(); i < n; i += 32) {
      const ops::Candidate<float> p{f(i), i};
      if (last.before(p) && p.before(best)) best = p;
    }
#pragma unroll
    for (int step = 16; step > 0; step /= 2) {
      const ops::Candidate<float> other{__shfl_xor_sync(~0u, best.value, step), __shfl_xor_sync(~0u, int(best.index), step)};
      if (other.before(best)) best = other;
    }
    return best;
  }
  __device__ __forceinline__ bool first() const { return lane() == 0; }
  __device__ __forceinline__ void meet() const { __syncwarp(); }
};

__device__ __forceinline__ std::int64_t token_of_warp() { return std::int64_t(blockIdx.x) * tokens_a_block + threadIdx.x / 32; }

__global__ void __launch_bounds__(threads)
    route_forward_kernel(const __grid_constant__ ops::Routing r, std::int64_t tokens, std::int64_t experts, const float* logits,
                         const float* bias, std::int32_t* chosen, float* weights, float* scores) {
  const std::int64_t t = token_of_warp();
  if (t < tokens)
    ops::route_row(WarpToken{}, r, t, experts, logits + t * experts, bias, chosen + t * r.choices, weights + t * r.choices,
                   scores + t * experts);
}

__global__ void __launch_bounds__(threads)
    route_backward_kernel(const __grid_constant__ ops::Routing r, std::int64_t tokens, std::int64_t experts, ops::SequenceRows rows,
                          const float* logits, const float* scores, const std::int32_t* chosen, const float* dweights, const float* dscores,
                          bool relative, float z_loss, const float* z_scale, float* dlogits) {
  const std::int64_t t = token_of_warp();
  if (t >= tokens) return;
  const WarpToken lanes;
  const float* const row = scores + t * experts;
  const auto ds = ops::score_gradient<float>(lanes, r, experts, row, chosen + t * r.choices, dweights + t * r.choices,
                                             dscores != nullptr ? dscores + (rows.first + t) / rows.length * experts : nullptr, relative);
  ops::route_backward_row(lanes, r, experts, logits + t * experts, ds, row, z_scale != nullptr ? z_loss * *z_scale : z_loss,
                          dlogits + t * experts);
}

// A block for each strip of a sequence: its counts and its sums.
__global__ void __launch_bounds__(threads)
    load_strips_kernel(ops::SequenceRows rows, std::int64_t tokens, int experts, int choices, const std::int32_t* chosen,
                       const float* scores, bool relative, float* counts, float* sums) {
  constexpr int strip = int(ops::route_strip);
  __shared__ float totals[strip];
  const ops::RowRange own = ops::rows_of_sequence(rows, blockIdx.y, tokens);
  const std::int64_t first = own.first + std::int64_t(blockIdx.x) * strip;
  const int n = int(max(std::int64_t(0), min(std::int64_t(strip), own.end - first)));
  const float* const p = scores + first * experts;
  for (int i = int(threadIdx.x / 32); i < n; i += threads / 32) {
    const float total = relative ? WarpToken{}.sum(experts, [&](std::int64_t e) { return p[i * experts + e]; }) : 1.0f;
    if (threadIdx.x % 32 == 0) totals[i] = total;
  }
  __syncthreads();
  const std::int64_t to = (std::int64_t(blockIdx.y) * gridDim.x + blockIdx.x) * experts;
  for (int e = int(threadIdx.x); e < experts; e += threads) {
    float sum = 0;
    for (int i = 0; i < n; ++i) sum += p[i * experts + e] / totals[i];
    int count = 0;
    for (int i = 0; i < n * choices; ++i) count += chosen[first * choices + i] == e;
    counts[to + e] = float(count), sums[to + e] = sum;
  }
}

__global__ void __launch_bounds__(threads)
    add_strips_kernel(std::int64_t strips, int experts, const float* counts, const float* sums, float* all_counts, float* all_sums) {
  const int e = int(blockIdx.x) * threads + int(threadIdx.x);
  if (e >= experts) return;
  const std::int64_t s = blockIdx.y;
  float count = all_counts[s * experts + e], sum = all_sums[s * experts + e];
#pragma unroll 8
  for (std::int64_t i = 0; i < strips; ++i) {
    count += counts[(s * strips + i) * experts + e];
    sum += sums[(s * strips + i) * experts + e];
  }
  all_counts[s * experts + e] = count, all_sums[s * experts + e] = sum;
}

}  // namespace

void route_forward(Queue queue, const ops::Routing& r, const ops::RouteForward& a) {
  const std::int64_t tokens = a.logits.shape[0];
  if (tokens == 0) return;
  route_forward_kernel<<<unsigned(ceil_div(tokens, tokens_a_block)), threads, 0, queue>>>(
      r, tokens, a.logits.shape[1], a.logits.f32(), a.bias.f32(), a.chosen.as<std::int32_t>(), a.weights.f32(), a.scores.f32());
  launched("route_forward");
}

void route_backward(Queue queue, const ops::Routing& r, const ops::RouteBackward& a) {
  const std::int64_t tokens = a.logits.shape[0];
  if (tokens == 0) return;
  route_backward_kernel<<<unsigned(ceil_div(tokens, tokens_a_block)), threads, 0, queue>>>(
      r, tokens, a.logits.shape[1], a.rows, a.logits.f32(), a.scores.f32(), a.chosen.as<std::int32_t>(), a.dweights.f32(), a.dscores.f32(),
      a.relative, a.z_loss, a.z_scale.f32(), a.dlogits.f32());
  launched("route_backward");
}

void route_load(Queue queue, const ops::RouteLoad& a, const Tensor& strips) {
  const std::int64_t sequences = a.counts.shape[0], of_sequence = strips.shape[1];
  const int experts = int(a.scores.shape[1]);
  if (of_sequence == 0) return;
  float *const counts = strips.f32(), *const sums = counts + sequences * of_sequence * experts;
  load_strips_kernel<<<dim3(unsigned(of_sequence), unsigned(sequences)), threads, 0, queue>>>(
      a.rows, a.scores.shape[0], experts, int(a.chosen.shape[1]), a.chosen.as<std::int32_t>(), a.scores.f32(), a.relative, counts, sums);
  launched("route_load");
  add_strips_kernel<<<dim3(unsigned(ceil_div(std::int64_t(experts), threads)), unsigned(sequences)), threads, 0, queue>>>(
      of_sequence, experts, counts, sums, a.counts.f32(), a.sums.f32());
  launched("route_load");
}

}  // namespace octet::cuda
