#include "octet/ops/expert_map/expert_map.kernels.hpp"
#include "octet/tensor/cuda/check.cuh"
#include "octet/tensor/cuda/queue.hpp"

// Without atomics: the place of a choice among those of its expert is the number of earlier ones, so the map has the bits of the CPU's.
// Strips of choices are counted, the counts become the strips' first places, and each strip places its choices.

namespace octet::cuda {
namespace {

constexpr int threads = int(ops::expert_map_strip), warps = threads / 32, scan_threads = 1024;

// counts[warp * experts + e]: how often each warp's choices are expert e; cleared here. `peers`: this choice's earlier ones in the warp.
__device__ __forceinline__ int count_warps(int expert, int experts, std::uint16_t* counts) {
  for (int i = int(threadIdx.x); i < warps * experts; i += threads) counts[i] = 0;
  __syncthreads();
  const unsigned same = __match_any_sync(~0u, expert), lane = threadIdx.x % 32;
  const int earlier = __popc(same & ((1u << lane) - 1));
  if (expert >= 0 && earlier == 0) counts[int(threadIdx.x / 32) * experts + expert] = std::uint16_t(__popc(same));
  __syncthreads();
  return earlier;
}

// This thread's choice; -1 beyond the last, and for an expert out of range.
__device__ __forceinline__ int expert_of(const std::int32_t* chosen, std::int64_t choices, int experts) {
  const std::int64_t i = std::int64_t(blockIdx.x) * threads + threadIdx.x;
  const int expert = i < choices ? chosen[i] : -1;
  return expert >= 0 && expert < experts ? expert : -1;
}

__global__ void __launch_bounds__(threads)
    count_strips_kernel(const std::int32_t* chosen, std::int64_t choices, int experts, std::int32_t* strips) {
  extern __shared__ std::uint16_t counts[];
  count_warps(expert_of(chosen, choices, experts), experts, counts);
  for (int e = int(threadIdx.x); e < experts; e += threads) {
    int sum = 0;
    for (int w = 0; w < warps; ++w) sum += counts[w * experts + e];
    strips[std::int64_t(blockIdx.x) * experts + e] = sum;
  }
}

// One block. `parts` threads share an expert's strips: thread p * experts + e has the p-th part of them.
__global__ void __launch_bounds__(scan_threads)
    begin_groups_kernel(int strips, int experts, int parts, int tile, std::int32_t* counts, std::int32_t* begin, std::int32_t* count) {
  __shared__ int sums[scan_threads], ends[scan_threads];
  const int e = int(threadIdx.x) % experts, p = int(threadIdx.x) / experts;
  const int length = (strips + parts - 1) / parts, first = p < parts ? min(p * length, strips) : strips, last = min(first + length, strips);
  int sum = 0;
#pragma unroll 8
  for (int s = first; s < last; ++s) sum += counts[std::int64_t(s) * experts + e];
  sums[threadIdx.x] = sum;
  __syncthreads();
  int before = 0, all = 0;  // choices of the expert in earlier parts, and in all
  for (int q = 0; q < parts; ++q) {
    if (q == p) before = all;
    all += sums[q * experts + e];
  }
  ends[threadIdx.x] = int(threadIdx.x) < experts ? (all + tile - 1) / tile * tile : 0;
  for (int step = 1; step < experts; step *= 2) {
    __syncthreads();
    const int left = int(threadIdx.x) >= step ? ends[threadIdx.x - step] : 0;
    __syncthreads();
    ends[threadIdx.x] += left;
  }
  __syncthreads();
  if (int(threadIdx.x) < experts) count[e] = all, begin[e + 1] = ends[e];
  if (threadIdx.x == 0) begin[0] = 0;
  int place = before + (e > 0 ? ends[e - 1] : 0);
  for (int s = first; s < last; ++s) {
    const int n = counts[std::int64_t(s) * experts + e];
    counts[std::int64_t(s) * experts + e] = place;
    place += n;
  }
}

__global__ void __launch_bounds__(threads) place_choices_kernel(const std::int32_t* chosen, std::int64_t choices, int experts,
                                                                const std::int32_t* places, std::int32_t* row, std::int32_t* source) {
  extern __shared__ std::uint16_t counts[];
  const int expert = expert_of(chosen, choices, experts), earlier = count_warps(expert, experts, counts);
  for (int e = int(threadIdx.x); e < experts; e += threads) {
    int sum = 0;
    for (int w = 0; w < warps; ++w) {
      const int n = counts[w * experts + e];
      counts[w * experts + e] = std::uint16_t(sum);
      sum += n;
    }
  }
  __syncthreads();
  const std::int64_t i = std::int64_t(blockIdx.x) * threads + threadIdx.x;
  if (expert < 0) {
    if (i < choices) row[i] = -1;
    return;
  }
  const int to = places[std::int64_t(blockIdx.x) * experts + expert] + counts[int(threadIdx.x / 32) * experts + expert] + earlier;
  row[i] = to, source[to] = std::int32_t(i);
}

}  // namespace

void expert_map(Queue queue, const Tensor& chosen, const ops::ExpertMap& map, const Tensor& strips) {
  const std::int64_t choices = chosen.count();
  const int experts = int(map.groups.size()), blocks = int(strips.shape[0]), parts = scan_threads / experts;
  const std::size_t shared = std::size_t(warps) * std::size_t(experts) * sizeof(std::uint16_t);
  if (map.rows() > 0) require(cudaMemsetAsync(map.source.data, 0xFF, map.source.bytes(), queue), "clear the map");
  if (blocks > 0) {
    count_strips_kernel<<<unsigned(blocks), threads, shared, queue>>>(chosen.as<std::int32_t>(), choices, experts,
                                                                      strips.as<std::int32_t>());
    launched("count_strips");
  }
  begin_groups_kernel<<<1, scan_threads, 0, queue>>>(blocks, experts, parts, int(map.groups.tile), strips.as<std::int32_t>(),
                                                     map.groups.begin.as<std::int32_t>(), map.groups.count.as<std::int32_t>());
  launched("begin_groups");
  if (blocks == 0) return;
  place_choices_kernel<<<unsigned(blocks), threads, shared, queue>>>(chosen.as<std::int32_t>(), choices, experts, strips.as<std::int32_t>(),
                                                                     map.row.as<std::int32_t>(), map.source.as<std::int32_t>());
  launched("place_choices");
}

}  // namespace octet::cuda
