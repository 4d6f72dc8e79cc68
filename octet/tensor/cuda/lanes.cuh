#pragma once

// Only for *.cuda.cu files: what a group of GPU threads offers to a shared row body (on the CPU one thread with a SIMD register does).

#include "octet/tensor/cuda/pack.cuh"

namespace octet::cuda {

/// max and sum over the 32 threads of a warp; every thread gets it.
__device__ __forceinline__ float warp_sum(float x) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(~0u, x, step);
  return x;
}
__device__ __forceinline__ float warp_max(float x) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) x = octet::larger(__shfl_xor_sync(~0u, x, step), x);
  return x;
}

/// The same over `threads` threads of a block, all of which must call; one place in shared memory for every warp.
template <int threads, class F>
__device__ __forceinline__ float block_fold(float x, F warp_fold) {
  constexpr int warps = threads / 32;
  x = warp_fold(x);
  if constexpr (warps > 1) {
    __shared__ float parts[warps];
    __syncthreads();  // the last call's parts have been read
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = x;
    __syncthreads();
    x = parts[0];
#pragma unroll
    for (int i = 1; i < warps; ++i) x = warp_fold.pair(x, parts[i]);
  }
  return x;
}
struct SumFold {
  __device__ __forceinline__ float operator()(float x) const { return warp_sum(x); }
  __device__ __forceinline__ float pair(float a, float b) const { return a + b; }
};
struct MaxFold {
  __device__ __forceinline__ float operator()(float x) const { return warp_max(x); }
  __device__ __forceinline__ float pair(float a, float b) const { return octet::larger(b, a); }
};

/// A row's lanes: `threads` threads (a warp or a whole block) walk it together in packs of N values each. Rows must start aligned to a
/// pack and their length must be a multiple of N.
template <int threads, int N>
struct RowLanes {
  using Value = Pack<N>;
  static_assert(threads % 32 == 0);

  __device__ __forceinline__ int lane() const { return threadIdx.x % threads; }

  template <class F>
  __device__ __forceinline__ void each(std::int64_t n, F&& f) const {
    for (std::int64_t i = lane() * N; i < n; i += threads * N) f(i);
  }
  __device__ __forceinline__ bool first() const { return lane() == 0; }

  template <class T> __device__ __forceinline__ Value load(const T* p, std::int64_t at) const { return cuda::load<N>(p, at); }
  template <class T> __device__ __forceinline__ void store(T* p, std::int64_t at, const Value& v) const { cuda::store(p, at, v); }
  __device__ __forceinline__ Value within(const Value& v, std::int64_t, float = 0) const { return v; }

  /// p[at + i] = round(v[i], bits): the upper half of `bits` is random, drawn for element e = first + at + i as half e % 2 of word
  /// e % 8 / 2 of words(e / 8).
  template <class T, class Words, class Round>
  __device__ __forceinline__ void store_drawn(T* p, std::int64_t at, const Value& v, std::int64_t first, const Words& words,
                                              const Round& round) const {
    auto eight = words((first + at) / 8);
    alignas(16) T rounded[N];
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const unsigned place = N % 8 == 0 ? unsigned(i) % 8 : unsigned(first + at + i) % 8;
      if (i > 0 && place == 0) eight = words((first + at + i) / 8);
      const unsigned word = place < 4 ? (place < 2 ? eight.w[0] : eight.w[1]) : (place < 6 ? eight.w[2] : eight.w[3]);
      rounded[i] = round(v.v[i], place % 2 ? word : word << 16);
    }
    if constexpr (N * sizeof(T) == 16)
      *reinterpret_cast<uint4*>(p + at) = *reinterpret_cast<const uint4*>(rounded);
    else
      for (int i = 0; i < N; ++i) p[at + i] = rounded[i];
  }

  __device__ __forceinline__ Value sqrt(const Value& v) const { return map(v, [](float x) { return sqrtf(x); }); }
  __device__ __forceinline__ float sqrt(float v) const { return sqrtf(v); }

  __device__ __forceinline__ float sum(const Value& v) const { return block_fold<threads>(sum_of(v), SumFold{}); }
};

/// Calls f.operator()<N>() with the widest pack of T that rows of `cols` values allow: 16 bytes, or one value.
template <class T, class F>
void with_pack(std::int64_t cols, const F& f) {
  constexpr int widest = 16 / int(sizeof(T));
  if (cols % widest == 0) f.template operator()<widest>();
  else f.template operator()<1>();
}

}  // namespace octet::cuda
