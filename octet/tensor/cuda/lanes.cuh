#pragma once

// Only for *.cuda.cu files: the row interface of a group of GPU threads (on a CPU, of one thread with a SIMD register).

#include "octet/numerics/philox.hpp"
#include "octet/numerics/rounding.hpp"
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

/// The same over `threads` threads of a block, all of which must call; one element of shared memory per warp.
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

/// Whether all values lie where BF16 has codes on both sides.
template <int N>
__device__ __forceinline__ bool within_bf16(const Pack<N>& x) {
  float most = 0;
#pragma unroll
  for (int i = 0; i < N; ++i) asm("max.NaN.f32 %0, %1, %0;" : "+f"(most) : "f"(fabsf(x.v[i])));
  return most <= bf16_max;
}

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

  template <class T>
  __device__ __forceinline__ Value load(const T* p, std::int64_t at) const {
    return cuda::load<N>(p, at);
  }
  template <class T>
  __device__ __forceinline__ void store(T* p, std::int64_t at, const Value& v) const {
    cuda::store(p, at, v);
  }
  __device__ __forceinline__ Value within(const Value& v, std::int64_t, float = 0) const { return v; }

  /// p[at + i] = v[i] rounded stochastically by random bits that are drawn for element e = at + i: half e % 2 of word e % 8 / 2 of words(e
  /// / 8). Packs of 8 begin at a multiple of 8.
  template <class Words>
  __device__ __forceinline__ void store_drawn(Bf16* p, std::int64_t at, const Value& v, const Words& words) const {
    const RandomWords eight = words(at / 8);
    if constexpr (N == 8) {
      if (within_bf16(v)) {
        unsigned q[4];
#pragma unroll
        for (int i = 0; i < 4; ++i)
          q[i] = __byte_perm(raised_to_bf16(v.v[2 * i], eight.w[i] << 16), raised_to_bf16(v.v[2 * i + 1], eight.w[i]), 0x7632);
        *reinterpret_cast<uint4*>(p + at) = make_uint4(q[0], q[1], q[2], q[3]);
        return;
      }
    }
    static_assert(N == 8 || 8 % N == 0);  // no pack has parts of two eights
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const unsigned place = unsigned(at + i) % 8;
      const unsigned word = place < 4 ? (place < 2 ? eight.w[0] : eight.w[1]) : (place < 6 ? eight.w[2] : eight.w[3]);
      p[at + i] = to_bf16_stochastic(v.v[i], place % 2 ? word : word << 16);
    }
  }

  __device__ __forceinline__ Value sqrt(const Value& v) const { return cuda::sqrt(v); }
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
