#pragma once

// Only for *.cuda.cu files: BlockHealth of a tile's rows, in measured steps. See tile.cuh.

#include "octet/ops/quantize/cuda/tile_health.cuh"

namespace octet::cuda {

/// Which of a thread's eight rows have a saturated or flushed value, and which a value that is neither 0 nor NaN, as bits.
struct RowBits {
  unsigned lossy = 0, used = 0;
};

/// scale(i): of row i.
template <class Format, class T, class Scale>
__device__ __forceinline__ RowBits look_at_rows(Eight<T> (&v)[8], uint2 (&codes)[8], const Scale& scale) {
  RowBits bits;
#pragma unroll 1
  for (int i = 0; i < 8; ++i) {
    Tally tally;
    const float s = scale(i);
    count_each<Format>(
        v[0], codes[0], [s](int) { return s; }, tally);
    bool used = false;
#pragma unroll
    for (int j = 0; j < 8; ++j) used |= fabsf(v[0][j]) > 0;
    bits.lossy |= unsigned(tally.saturated + tally.flushed > 0) << i, bits.used |= unsigned(used) << i;
    rotate(v, codes);
  }
  return bits;
}

/// Measurements of blocks of one thread.
struct BlockTally {
  int scales = 0, blocks = 0, lossy = 0;        // scales: not those of blocks of zeros
  double log_scale = 0, log_scale_squares = 0;  // integers

  __device__ __forceinline__ void see(float scale) {
    const double log = ops::log_units(scale);
    ++scales, log_scale += log, log_scale_squares += log * log;
  }
};

/// Of the blocks of rows that begin in this thread. `inside`: how many of its rows lie in the matrix, 0 if its columns do not. All threads
/// of the block call.
template <class Scale>
__device__ __forceinline__ BlockTally tally_blocks(const TileJob& job, const Spot& at, int inside, RowBits bits, const Scale& scale) {
  BlockTally n;
  const int thread = int(threadIdx.x);
  if (job.row.part == Part::square) {
    const bool lossy = __syncthreads_or(int(bits.lossy)) != 0, used = __syncthreads_or(int(bits.used)) != 0;
    if (thread == 0 && inside > 0) n.blocks = 1, n.lossy = lossy;
    if (thread == 0 && inside > 0 && used) n.see(scale(0));
  } else if (job.row.part == Part::blocks) {
    const int reach = 1 << (job.row.shift - 3);  // threads that share a block
    for (int step = 1; step < reach; step *= 2)
      bits.lossy |= __shfl_xor_sync(~0u, bits.lossy, step), bits.used |= __shfl_xor_sync(~0u, bits.used, step);
    if ((thread & (reach - 1)) == 0) {
#pragma unroll 1
      for (int i = 0; i < inside; ++i) {
        n.lossy += int(bits.lossy >> i & 1);
        if (bits.used >> i & 1) n.see(scale(i));
      }
      n.blocks = inside;
    }
  } else if (job.row.part == Part::lines && at.col0 == 0 && at.c == 0) {
#pragma unroll 1
    for (int i = 0; i < inside; ++i) n.see(scale(i));
  }
  return n;
}

/// Adds to BlockHealth, whose numbers are in this order. All threads of the block call.
__device__ __forceinline__ void report_blocks(ops::BlockHealth& to, const BlockTally& n, double (&shared)[5][tile_threads / 32]) {
  const double all[5] = {double(n.scales), n.log_scale, n.log_scale_squares, double(n.blocks), double(n.lossy)};
  const int thread = int(threadIdx.x);
#pragma unroll
  for (int k = 0; k < 5; ++k) {
    const double sum = sum_of_warp(all[k]);
    if (thread % 32 == 0) shared[k][thread / 32] = sum;
  }
  __syncthreads();
  if (thread >= 5) return;
  double sum = 0;
#pragma unroll 1
  for (const double one : shared[thread]) sum += one;
  if (sum != 0) atomicAdd(reinterpret_cast<unsigned long long*>(&to.scales + thread), static_cast<unsigned long long>(std::int64_t(sum)));
}

}  // namespace octet::cuda
