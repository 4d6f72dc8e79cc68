#pragma once

// Only for *.cuda.cu files: maxima of a tile's blocks and their scales. See tile.cuh.

#include "octet/ops/quantize/quantize.math.hpp"
#include "octet/ops/quantize/cuda/codes.cuh"
#include "octet/ops/quantize/cuda/job.cuh"
#include "octet/tensor/cuda/lanes.cuh"

namespace octet::cuda {

/// Shared memory of a block for a tile. A scale is at block * 128 + line; a common one at 0.
struct TileShared {
  uint4 codes[tile_side * tile_side / 16];  // before that: maxima of columns, 128 of each warp's 16 rows
  float row_scale[4 * tile_side], col_scale[4 * tile_side];
  float warp_top[tile_threads / 32];
  double reported[4][tile_threads / 32];   // see report()
  double of_blocks[5][tile_threads / 32];  // see report_blocks()

  __device__ __forceinline__ float* column_tops(int warp) { return reinterpret_cast<float*>(codes) + warp * tile_side; }
};

/// Where a tile lies in the matrix, and where this thread's values begin in it: 8 of each of its rows, which 16 threads share.
struct Spot {
  std::int64_t row0, col0;
  int r, c;
};
/// Of a tile by its number: row by row. `width` columns are tiled, and a thread has `rows` rows.
__device__ __forceinline__ Spot spot_at(unsigned tile, std::int64_t width, int rows = 8) {
  const unsigned across = width > 0 ? unsigned((width + tile_side - 1) / tile_side) : 1, down = tile / across;
  return {std::int64_t(down) * tile_side, std::int64_t(tile - down * across) * tile_side, int(threadIdx.x) / 16 * rows,
          int(threadIdx.x) % 16 * 8};
}
/// Of a block's tile, where neighbouring blocks have neighbouring ones.
__device__ __forceinline__ Spot spot_of(const TileJob& job, std::int64_t width, int rows = 8) {
  return spot_at(job.last_first ? gridDim.x - 1 - blockIdx.x : blockIdx.x, width, rows);
}

/// Magnitudes compare like their bits. The first comparison avoids most atomics.
__device__ __forceinline__ void raise(float* to, float x) {
  if (x > *static_cast<volatile float*>(to)) atomicMax(reinterpret_cast<int*>(to), __float_as_int(x));
}
/// Scales are above 0, and 0 means none.
__device__ __forceinline__ void widen_range(ops::QuantizeHealth* h, float least, float greatest) {
  raise(&h->scale_max, greatest);
  int* const low = reinterpret_cast<int*>(&h->scale_min);
  int seen = *static_cast<volatile int*>(low);
  while (seen == 0 || __float_as_int(least) < seen) {
    const int before = atomicCAS(low, seen, __float_as_int(least));
    if (before == seen) break;
    seen = before;
  }
}

/// Maxima to shared memory: of the tile, of row blocks, of columns; those of whole rows to where they are collected.
template <class T>
__device__ __forceinline__ void collect_tops(const TileJob& job, const Spot& at, const Eight<T> (&v)[8], TileShared& shared) {
  const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
  if (job.row.part == Part::blocks || job.row.part == Part::top_of_lines) {
    const int reach = job.row.part == Part::blocks ? 1 << (job.row.shift - 3) : 16;  // threads that share a block
    Tops<T> rows = Tops<T>::of_rows(v);
    rows.raise_from_lane(1), rows.raise_from_lane(2);
    if (reach > 4) rows.raise_from_lane(4);
    if (reach > 8) rows.raise_from_lane(8);
    if ((lane & (reach - 1)) == 0) {
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        if (job.row.part == Part::blocks) shared.row_scale[(at.c >> job.row.shift) * tile_side + at.r + i] = rows[i];
        else if (at.row0 + at.r + i < job.rows) raise(job.row.tops + at.row0 + at.r + i, rows[i]);
      }
    }
  }
  Tops<T> columns;
#pragma unroll
  for (int i = 0; i < 8; ++i) columns.raise(v[i]);
  float top = columns.top();
#pragma unroll
  for (int step = 16; step > 0; step /= 2) top = fmaxf(__shfl_xor_sync(~0u, top, step), top);
  if (lane == 0) shared.warp_top[warp] = top;
  if (job.col.part == Part::blocks || job.col.part == Part::top_of_lines) {
    columns.raise_from_lane(16);
    if (lane < 16) {
#pragma unroll
      for (int j = 0; j < 8; ++j) shared.column_tops(warp)[at.c + j] = columns[j];
    }
  }
}

/// Whether the squares of scaled values of a maximum are 0 in f32, or lose most of their bits: of a known scale that does not fit at all.
__device__ __forceinline__ bool squares_vanish(float scaled_amax) { return scaled_amax > 0 && scaled_amax < 0x1p-40f; }

/// Results of one thread that turns maxima into scales.
struct Found {
  float least = INFINITY, greatest = 0;
  bool beyond = false;  // some value may be infinite or land beyond the format's largest, or squares vanish

  __device__ __forceinline__ void add(float amax, float scale, float format_max) {
    see(scale);
    beyond |= !(amax * scale <= format_max) || squares_vanish(amax * scale);  // an infinite maximum too: its scale is 1
  }
  __device__ __forceinline__ void see(float scale) { least = fminf(least, scale), greatest = fmaxf(greatest, scale); }
};

__device__ __forceinline__ void put_descale(const Side& side, std::int64_t line, std::int64_t block, const BlockScale<float>& s) {
  const std::int64_t at = line * side.line_stride + block * side.block_stride;
  if (side.e8m0) static_cast<std::uint8_t*>(side.descales)[at] = std::uint8_t(s.code);
  else static_cast<float*>(side.descales)[at] = s.descale;
}

__device__ __forceinline__ BlockRule rule_of(const TileJob& job, const Side& side) {
  return {.rule = job.rule, .format_max = job.format_max, .overflow = side.overflow};
}

/// Scales of one orientation's blocks in a tile that begins at `line0` and, along the lines, at value `at0` of `length`. tops(line,
/// block) is the maximum of a block.
template <class TopOf>
__device__ __forceinline__ void find_block_scales(const TileJob& job, const Side& side, std::int64_t line0, std::int64_t at0,
                                                  const TopOf& tops, float* scales, Found& found) {
  const std::int64_t block0 = at0 >> side.shift;
#pragma unroll 1
  for (int e = int(threadIdx.x); e < tile_side * (tile_side >> side.shift); e += tile_threads) {
    const int line = e % tile_side, block = e / tile_side;
    const float amax = tops(line, block);
    const auto s = block_scale(amax, rule_of(job, side));
    scales[e] = s.scale;
    if (line0 + line >= side.lines || block0 + block >= side.blocks) continue;
    put_descale(side, line0 + line, block0 + block, s);
    if (side.counts) found.add(amax, s.scale, job.format_max);
  }
}

/// Padding of a layout is 1 in f32 and the code 0 in e8m0: always the same bytes.
__device__ __forceinline__ void fill_padding(const Side& side) {
  const std::int64_t beside = side.stored_blocks - side.blocks, below = side.stored_lines - side.lines;
  const std::int64_t n = side.lines * beside + below * side.stored_blocks;
#pragma unroll 1
  for (std::int64_t e = threadIdx.x; e < n; e += tile_threads) {
    const std::int64_t rest = e - side.lines * beside;
    const bool low = rest >= 0;
    put_descale(side, low ? side.lines + rest / side.stored_blocks : e / beside, low ? rest % side.stored_blocks : side.blocks + e % beside,
                {1, 1, 0});
  }
}

/// The scale of Part::constant. One that follows from a maximum has its descale stored by one thread of the first tile.
__device__ __forceinline__ float constant_scale(const TileJob& job, const Side& side, bool stores) {
  if (side.top == nullptr) return fabsf(*side.scale);
  const auto s = block_scale(*side.top, rule_of(job, side));
  if (stores) put_descale(side, 0, 0, s);
  return s.scale;
}

/// One orientation's scales, to shared memory.
template <class TopOf>
__device__ __forceinline__ void find_side(const TileJob& job, const Side& side, std::int64_t line0, std::int64_t at0, float tile_top,
                                          const TopOf& tops, float* scales, Found& found) {
  const int thread = int(threadIdx.x);
  if (side.part == Part::constant && thread == 0) {
    const float s = constant_scale(job, side, line0 == 0 && at0 == 0);
    scales[0] = s;
    if (side.counts) found.add(tile_top, s, job.format_max);
  } else if (side.part == Part::square && thread == 0) {
    const auto s = block_scale(tile_top, rule_of(job, side));
    scales[0] = s.scale;
    if (line0 / tile_side < side.lines && at0 / tile_side < side.blocks) {
      put_descale(side, line0 / tile_side, at0 / tile_side, s);
      if (side.counts) found.add(tile_top, s.scale, job.format_max);
    }
  } else if (side.part == Part::lines && thread < tile_side) {
    const float s = line0 + thread < side.lines ? side.scale[line0 + thread] : 1.0f;
    scales[thread] = fabsf(s);
    if (side.counts && line0 + thread < side.lines) found.see(fabsf(s)), found.beyond |= s < 0;
  } else if (side.part == Part::blocks) {
    find_block_scales(job, side, line0, at0, tops, scales, found);
  }
  if (line0 == 0 && at0 == 0 && (side.part == Part::square || side.part == Part::blocks)) fill_padding(side);
}

/// Maxima of the tile to scales, or to where they are collected. True when some value of the counted orientation is as Found::beyond says.
/// All threads of the block must call.
__device__ __forceinline__ bool find_scales(const TileJob& job, const Spot& at, TileShared& shared) {
  float top = shared.warp_top[0];
#pragma unroll
  for (int w = 1; w < tile_threads / 32; ++w) top = fmaxf(shared.warp_top[w], top);
  if (threadIdx.x == 0) {
    if (job.amax) raise(job.amax, top);
    if (job.row.part == Part::top_of_tensor) raise(job.row.tops, top);
    else if (job.col.part == Part::top_of_tensor) raise(job.col.tops, top);
  }
  const auto columns = [&](int line, int block) {  // over the warps, of 16 rows each, that a block of rows has
    const int warps = job.col.part == Part::blocks ? 1 << (job.col.shift - 4) : tile_side / 16;
    float most = 0;
#pragma unroll 2
    for (int w = 0; w < warps; ++w) most = fmaxf(shared.column_tops(block * warps + w)[line], most);
    return most;
  };
  if (job.col.part == Part::top_of_lines && threadIdx.x < tile_side && at.col0 + threadIdx.x < job.cols)
    raise(job.col.tops + at.col0 + threadIdx.x, columns(int(threadIdx.x), 0));

  Found found;
  find_side(
      job, job.row, at.row0, at.col0, top, [&](int line, int block) { return shared.row_scale[block * tile_side + line]; },
      shared.row_scale, found);
  find_side(job, job.col, at.col0, at.row0, top, columns, shared.col_scale, found);
  if (job.health) {
    const float least = -warp_max(-found.least), greatest = warp_max(found.greatest);
    if (threadIdx.x % 32 == 0 && greatest > 0) widen_range(job.health, least, greatest);
  }
  return found.beyond;
}

}  // namespace octet::cuda
