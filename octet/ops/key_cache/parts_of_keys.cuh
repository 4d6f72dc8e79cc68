#pragma once

// Only for *.cuda.cu files: attention of a head to parts of its keys, by the warps of a block and the blocks of a cluster.

#include <cooperative_groups.h>

#include "octet/numerics/math.hpp"
#include "octet/ops/key_cache/key_cache.cuh"
#include "octet/tensor/cuda/lanes.cuh"

namespace octet::cuda::parts_of_keys {

namespace groups = cooperative_groups;

inline constexpr int warps = 16;

// The part of a head's result that one warp has: unscaled, of exponentials below exp(most). A lane has C neighbouring columns.
template <int C>
struct Partial {
  float most = -__builtin_inff(), sum = 0, out[C] = {};
};
/// Keys that a warp reads at once, since each is a chain of loads and exchanges.
template <int C>
inline constexpr int at_once = C <= 4   ? 8
                               : C <= 8 ? 4
                                        : 1;

// Rows of keys or values, from the first that a block reads.
template <class Row>
struct Rows {
  const Row* at;
  const float* descales;  // of codes; otherwise null
  int columns;

  __device__ __forceinline__ float descale(std::int64_t row) const { return descales != nullptr ? descales[row] : 1.0f; }
};

/// Whether a lane's columns are loaded at once. Heads whose columns are no multiple of C take the kernel of the longest ones.
template <int C>
inline constexpr bool packs = C < most_columns / 32;

// Rows j, j + warps, ... of `keys` rows; others are 0.
template <int C, class Row>
__device__ __forceinline__ void load_rows(const Rows<Row>& rows, std::int64_t j, std::int64_t keys, int lane, float (&x)[at_once<C>][C]) {
  const int first = lane * C;
#pragma unroll
  for (int n = 0; n < at_once<C>; ++n) {
    const std::int64_t at = j + n * warps;
    const Row* const row = rows.at + at * rows.columns;
    Pack<C> p{};
    if constexpr (packs<C>) {
      if (first < rows.columns && at < keys) p = cuda::load<C>(row, first);
    }
#pragma unroll
    for (int i = 0; i < C; ++i) {
      if (!packs<C> && first + i < rows.columns && at < keys) p.v[i] = cuda::load<1>(row, first + i).v[0];
      x[n][i] = p.v[i];
    }
  }
}

// The scores of such rows; those beyond `keys` are minus infinity.
template <int C, class Row>
__device__ __forceinline__ void scores_of(const float (&q)[C], const float (&k)[at_once<C>][C], const Rows<Row>& rows, std::int64_t j,
                                          std::int64_t keys, float (&score)[at_once<C>]) {
#pragma unroll
  for (int n = 0; n < at_once<C>; ++n) {
    const std::int64_t at = j + n * warps;
    float sum = 0;
#pragma unroll
    for (int i = 0; i < C; ++i) sum = fmaf(q[i], k[n][i], sum);
    sum = warp_sum(sum);
    score[n] = at < keys ? sum * rows.descale(at) : -__builtin_inff();
  }
}

// Keys `warp`, `warp` + warps, ... Values are loaded beside keys, so that a round waits once.
template <int C, class Row>
__device__ void attend(const float (&q)[C], const Rows<Row>& k, const Rows<Row>& v, std::int64_t keys, int warp, int lane, Partial<C>& p) {
#pragma unroll 1
  for (std::int64_t j = warp; j < keys; j += warps * at_once<C>) {
    float key[at_once<C>][C], value[at_once<C>][C], score[at_once<C>];
    load_rows<C>(k, j, keys, lane, key), load_rows<C>(v, j, keys, lane, value);
    scores_of<C>(q, key, k, j, keys, score);
    float top = p.most;
#pragma unroll
    for (int n = 0; n < at_once<C>; ++n) top = fmaxf(top, score[n]);
    const float keep = math::exp(p.most - top);
    p.sum *= keep, p.most = top;
#pragma unroll
    for (int i = 0; i < C; ++i) p.out[i] *= keep;
#pragma unroll
    for (int n = 0; n < at_once<C>; ++n) {
      const std::int64_t at = j + n * warps;
      if (at >= keys) continue;
      const float e = math::exp(score[n] - top), weight = e * v.descale(at);
      p.sum += e;
#pragma unroll
      for (int i = 0; i < C; ++i) p.out[i] = fmaf(weight, value[n][i], p.out[i]);
    }
  }
}

// A block's part of a head's result: its maximum, its sum, and dv values. In shared memory, with those of its warps and a factor for each.
struct BlockParts {
  float *factors, *of_warps, *of_block;
  int dv;

  __device__ __forceinline__ BlockParts(float* shared, int dv)
      : factors(shared), of_warps(shared + warps), of_block(of_warps + warps * (dv + 2)), dv(dv) {}
  /// Whole 16 bytes.
  static constexpr int floats(int dv) { return int(round_up(warps + (warps + 1) * (dv + 2), 4)); }

  template <int C>
  __device__ __forceinline__ void put(const Partial<C>& p, int warp, int lane) const {
    float* const own = of_warps + warp * (dv + 2);
    if (lane == 0) own[0] = p.most, own[1] = p.sum;
#pragma unroll
    for (int i = 0; i < C; ++i)
      if (lane * C + i < dv) own[2 + lane * C + i] = p.out[i];
  }

  /// The part of the block, of those of all warps.
  __device__ __forceinline__ void add_warps(int warp, int lane) const {
    __syncthreads();
    if (warp == 0) {
      const float most = lane < warps ? of_warps[lane * (dv + 2)] : -__builtin_inff(), most_of_all = warp_max(most);
      if (lane < warps) factors[lane] = factor(most, most_of_all);
      if (lane == 0) of_block[0] = most_of_all;
    }
    __syncthreads();
    for (int c = int(threadIdx.x) + 1; c < dv + 2; c += 32 * warps) {
      float x = 0;
#pragma unroll
      for (int w = 0; w < warps; ++w) x += of_warps[w * (dv + 2) + c] * factors[w];
      of_block[c] = x;
    }
  }

  /// The result, of the parts of a cluster's blocks, by its first block: put(c, value) of each column.
  template <class Put>
  __device__ __forceinline__ void write(const groups::cluster_group& cluster, const Put& put) const {
    cluster.sync();
    if (cluster.block_rank() == 0) {
      const int blocks = int(cluster.num_blocks());
      float most = -__builtin_inff(), sum = 0;
      for (int b = 0; b < blocks; ++b) most = fmaxf(most, cluster.map_shared_rank(of_block, b)[0]);
      for (int b = 0; b < blocks; ++b) sum += part_of(cluster, b, 1, most);
      for (int c = int(threadIdx.x); c < dv; c += 32 * warps) {
        float x = 0;
        for (int b = 0; b < blocks; ++b) x += part_of(cluster, b, 2 + c, most);
        put(c, x / sum);
      }
    }
    cluster.sync();  // the first block has read the others' parts
  }

 private:
  // Of a part without keys, whose maximum is minus infinity, 0.
  static __device__ __forceinline__ float factor(float most, float most_of_all) {
    return most == -__builtin_inff() ? 0.0f : math::exp(most - most_of_all);
  }
  __device__ __forceinline__ float part_of(const groups::cluster_group& cluster, int block, int i, float most) const {
    const float* const part = cluster.map_shared_rank(of_block, block);
    return part[i] * factor(part[0], most);
  }
};

}  // namespace octet::cuda::parts_of_keys
