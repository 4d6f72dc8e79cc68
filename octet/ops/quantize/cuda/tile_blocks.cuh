#pragma once

// Only for *.cuda.cu files: BlockHealth of a tile's rows, in measured steps. See tile.cuh.

#include "octet/ops/quantize/cuda/tile_health.cuh"

namespace octet::cuda {

/// Which of a thread's eight rows have a saturated or flushed value, as bits. scale(i): of row i.
template <class Format, class T, class Scale>
__device__ __forceinline__ unsigned lossy_rows(Eight<T> (&v)[8], uint2 (&codes)[8], const Scale& scale) {
  unsigned lossy = 0;
#pragma unroll 1
  for (int i = 0; i < 8; ++i) {
    Tally tally;
    const float s = scale(i);
    count_each<Format>(
        v[0], codes[0], [s](int) { return s; }, tally);
    lossy |= unsigned(tally.saturated + tally.flushed > 0) << i;
    rotate(v, codes);
  }
  return lossy;
}

/// Measurements of blocks of one thread.
struct BlockTally {
  int scales = 0, blocks = 0, lossy = 0;
  double log_scale = 0, log_scale_squares = 0;  // integers

  __device__ __forceinline__ void see(float scale) {
    const double log = ops::log_units(scale);
    ++scales, log_scale += log, log_scale_squares += log * log;
  }
};

/// Of the blocks of rows that begin in this thread. `inside`: how many of its rows lie in the matrix, 0 if its columns do not. All threads
/// of the block call.
template <class Scale>
__device__ __forceinline__ BlockTally tally_blocks(const TileJob& job, const Spot& at, int inside, unsigned lossy, const Scale& scale) {
  BlockTally n;
  const int thread = int(threadIdx.x);
  if (job.row.part == Part::square) {
    const bool any = __syncthreads_or(int(lossy)) != 0;
    if (thread == 0 && inside > 0) n.see(scale(0)), n.blocks = 1, n.lossy = any;
  } else if (job.row.part == Part::blocks) {
    const int reach = 1 << (job.row.shift - 3);  // threads that share a block
    for (int step = 1; step < reach; step *= 2) lossy |= __shfl_xor_sync(~0u, lossy, step);
    if ((thread & (reach - 1)) == 0) {
#pragma unroll 1
      for (int i = 0; i < inside; ++i) n.see(scale(i)), n.lossy += int(lossy >> i & 1);
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
