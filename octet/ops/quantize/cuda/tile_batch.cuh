#pragma once

// Only for *.cuda.cu files: tiles of several matrices of FP32, by one launch. See tile.cuh.

#include "octet/ops/quantize/cuda/tile.cuh"

namespace octet::cuda {

/// Passes over several matrices, one after the other.
struct TileBatch {
  static constexpr int most = 48;  // matrices: a launch has room for 32 KB
  int number = 0;
  unsigned end[most];  // of each matrix, in tiles of all
  TileJob job[most];
  const float* values[most];

  void add(const TileJob& one, const float* from) {
    const unsigned before = number == 0 ? 0 : end[number - 1];
    end[number] = before + unsigned(ceil_div(one.rows, tile_side) * ceil_div(one.cols, tile_side));
    job[number] = one, values[number] = from;
    ++number;
  }
};

inline __global__ void __launch_bounds__(tile_threads, blocks_at_once<float, true, 1>)
    tile_batch_kernel(const __grid_constant__ TileBatch all) {
  __shared__ TileShared shared;
  int i = 0;
  while (blockIdx.x >= all.end[i]) ++i;
  const TileJob& job = all.job[i];
  const unsigned tiles = i == 0 ? all.end[0] : all.end[i] - all.end[i - 1], tile = blockIdx.x - (all.end[i] - tiles);
  const Spot at = spot_at(job.last_first ? tiles - 1 - tile : tile, job.cols);
  TileValues<float, 1> v;
  make_tile<float, true>(Stored<float, float>{all.values[i], int(job.cols)}, int(job.rows), int(job.cols), at, v);
  finish_tile<float, true>(job, at, v[0], shared);
}

inline void run_batch(Queue queue, const TileBatch& all) {
  if (all.number == 0) return;
  tile_batch_kernel<<<all.end[all.number - 1], tile_threads, 0, queue>>>(all);
  launched("tile_batch_kernel");
}

}  // namespace octet::cuda
