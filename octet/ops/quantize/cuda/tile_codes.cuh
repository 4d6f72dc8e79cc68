#pragma once

// Only for *.cuda.cu files: encoding and storing of a tile in the registers of a block. See tile.cuh.

#include "octet/ops/quantize/cuda/tile_blocks.cuh"
#include "octet/ops/quantize/cuda/tile_values.cuh"

namespace octet::cuda {

/// How many of n rows (or columns) that begin at `at` lie in a matrix that has `all`.
__device__ __forceinline__ int inside(std::int64_t all, std::int64_t at, int n) {
  const std::int64_t rest = all - at;
  return rest < n ? (rest < 0 ? 0 : int(rest)) : n;
}

/// `held` rows of this thread's values, in packs of 8; 0 outside the matrix. `width` is how many columns each output has.
template <class T, int held, class Make>
__device__ __forceinline__ void make_rows(const Make& make, int rows, int width, const Spot& at, Eight<T> (&v)[Make::outputs][held]) {
  // Addresses are bounded rather than loads skipped, so that all loads can be under way at once.
  const int row = int(at.row0) + at.r, col = int(at.col0) + at.c, bounded_col = col < width ? col : width - 8;
  if (rows > 0 && width > 0) {
#pragma unroll
    for (int i = 0; i < held; ++i) {
      Eight<T> made[Make::outputs];
      make_eight<T>(make, min(row + i, rows - 1), bounded_col, made);
#pragma unroll
      for (int k = 0; k < Make::outputs; ++k) v[k][i] = made[k];
    }
  }
  if (at.row0 + tile_side <= rows && at.col0 + tile_side <= width) return;
#pragma unroll
  for (int k = 0; k < Make::outputs; ++k) {
#pragma unroll
    for (int i = 0; i < held; ++i)
      if (row + i >= rows || col >= width) v[k][i] = {};
  }
}

inline constexpr unsigned infinity_bits = 0x7F800000;

/// Maximum and counts of a thread whose `rows` rows have NaN, infinity or values that fast sums do not suit, recomputed value by value:
/// rare.
struct Odd {
  Tally tally;
  float top = 0;  // NaN is ignored
};
template <class Format, bool measures, class Make>
__device__ __forceinline__ Odd look_again(const TileJob& job, const Make& make, const Spot& at, float scale, int rows) {
  const int width = int(job.cols) / Make::outputs, row = int(at.row0) + at.r, col = int(at.col0) + at.c;
  const auto scale_of = [scale](int) { return scale; };
  Odd odd;
  Tops<Bf16> tops;
  rows = col < width ? inside(job.rows, row, rows) : 0;
#pragma unroll 1
  for (int i = 0; i < rows; ++i) {
    Eight<Bf16> v[Make::outputs];
    make_eight<Bf16>(make, row + i, col, v);
#pragma unroll
    for (int k = 0; k < Make::outputs; ++k) {
      tops.raise(v[k]);
      if constexpr (measures) {
        const uint2 codes = encode_eight<Format>(v[k], scale_of);
        count_each<Format>(v[k], codes, scale_of, odd.tally);
        measure_noise<Format>(job, v[k], codes, scale_of, odd.tally);
      } else {
#pragma unroll
        for (int j = 0; j < 8; ++j) odd.tally.nonfinite += !(fabsf(v[k][j]) < INFINITY);
      }
    }
  }
  odd.top = tops.top();
  return odd;
}

template <bool aligned>
__device__ __forceinline__ void store_rows(const TileJob& job, const Spot& at, const uint2 (&codes)[8]) {
  const int rows = inside(job.rows, at.row0 + at.r, 8), cols = inside(job.cols, at.col0 + at.c, 8);
  std::uint8_t* to = job.row.codes + (at.row0 + at.r) * job.cols + at.col0 + at.c;
  if (aligned && cols == 0) return;
#pragma unroll
  for (int i = 0; i < 8; ++i, to += job.cols) {
    if (i >= rows) continue;
    if constexpr (aligned) {
      *reinterpret_cast<uint2*>(to) = codes[i];
    } else {
#pragma unroll
      for (int j = 0; j < 8; ++j)
        if (j < cols) to[j] = std::uint8_t(byte_of(codes[i], j));
    }
  }
}

/// The first n of 16 codes, one by one.
__device__ __forceinline__ void store_bytes(std::uint8_t* to, uint4 q, int n) {
#pragma unroll 1
  for (int i = 0; i < n; ++i) {
    to[i] = std::uint8_t(q.x);
    q.x = __funnelshift_r(q.x, q.y, 8), q.y = __funnelshift_r(q.y, q.z, 8), q.z = __funnelshift_r(q.z, q.w, 8), q.w >>= 8;
  }
}

// Codes of a tile on their way from rows to columns, in shared memory: each column has 16 chunks of 8 codes; chunk k of column c is at k ^
// (c / 8), so neither writing nor reading has bank conflicts.

__device__ __forceinline__ void put_columns(const uint2 (&codes)[8], const Spot& at, uint4* turned) {
  uint2 column[8];
  turn_eight(codes, column);
  uint2* const chunks = reinterpret_cast<uint2*>(turned);
#pragma unroll
  for (int j = 0; j < 8; ++j) chunks[(at.c + j) * 16 + (at.r / 8 ^ at.c / 8)] = column[j];
}
/// Half a chunk per column: four of this thread's rows, the first or the second four. Words of every other chunk are swapped, again without
/// bank conflicts.
__device__ __forceinline__ void put_columns(const uint2 (&codes)[4], const Spot& at, int half, unsigned* turned) {
  const unsigned left[4] = {codes[0].x, codes[1].x, codes[2].x, codes[3].x}, right[4] = {codes[0].y, codes[1].y, codes[2].y, codes[3].y};
  unsigned column[2][4];
  turn_four(left, column[0]), turn_four(right, column[1]);
  const int k = at.r / 8;
#pragma unroll
  for (int j = 0; j < 8; ++j) turned[(at.c + j) * 32 + (k ^ at.c / 8) * 2 + (half ^ (k & 1))] = column[j / 4][j % 4];
}
/// To memory, 128 codes of a column at a time: columns from `beside` + at.col0 on, as far as those of `width` go. All of the block must
/// have put theirs. `thread`: of the 256 that take them.
template <bool swapped>
__device__ __forceinline__ void take_columns(const TileJob& job, const Spot& at, int thread, std::int64_t beside, std::int64_t width,
                                             const uint4* turned) {
  const int c = thread / 8, k = thread % 8;
  const int rows = inside(job.rows, at.row0 + 16 * k, 16), cols = inside(width, at.col0 + c, tile_side);
  std::uint8_t* to = job.col.codes + (beside + at.col0 + c) * job.rows + at.row0 + 16 * k;
#pragma unroll
  for (int p = 0; p < 4; ++p, to += 32 * job.rows) {
    uint4 q = turned[(p * 32 + c) * 8 + (k ^ (p * 2 + c / 16))];
    if (c / 8 % 2) q = make_uint4(q.z, q.w, q.x, q.y);
    if (swapped) q = make_uint4(q.x, q.y, q.w, q.z);
    if (p * 32 >= cols || rows == 0) continue;
    if (job.wide_columns) *reinterpret_cast<uint4*>(to) = q;
    else store_bytes(to, q, rows);
  }
}
__device__ __forceinline__ void store_columns(const TileJob& job, const Spot& at, const uint2 (&codes)[8], uint4* turned) {
  put_columns(codes, at, turned);
  __syncthreads();
  take_columns<false>(job, at, int(threadIdx.x), 0, job.cols, turned);
}

template <class Format, bool aligned, class T>
__device__ __forceinline__ void encode_tile(const TileJob& job, const Spot& at, Eight<T> (&v)[8], TileShared& shared, bool beyond) {
  Tally tally;
  uint2 codes[8];
  if (encodes(job.row.part)) {
    // One scale for all, per row, or per row and block.
    const int step = job.row.part == Part::lines || job.row.part == Part::blocks;
    const float* const scales = shared.row_scale + step * at.r + (job.row.part == Part::blocks ? (at.c >> job.row.shift) * tile_side : 0);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const float s = scales[i * step];
      codes[i] = encode_eight<Format>(v[i], [s](int) { return s; });
    }
    store_rows<aligned>(job, at, codes);
    if (job.health && job.row.counts)
      count<Format, true>(
          job, v, codes, beyond, [&](int i, int) { return scales[i * step]; }, tally);
    if (job.noise && job.row.counts && job.row.part != Part::constant) {
      const auto scale = [&](int i) { return scales[i * step]; };
      const RowBits bits = look_at_rows<Format>(v, codes, scale);
      const int rows = at.col0 + at.c < job.cols ? inside(job.rows, at.row0 + at.r, 8) : 0;
      report_blocks(job.health->blocks, tally_blocks(job, at, rows, bits, scale), shared.of_blocks);
    }
    if (job.same) store_columns(job, at, codes, shared.codes);
  }
  if (encodes(job.col.part) && !job.same) {
    const int step = job.col.part == Part::lines || job.col.part == Part::blocks;
    const float* const scales = shared.col_scale + step * at.c + (job.col.part == Part::blocks ? (at.r >> job.col.shift) * tile_side : 0);
    float s[8];
#pragma unroll
    for (int j = 0; j < 8; ++j) s[j] = scales[j * step];
#pragma unroll
    for (int i = 0; i < 8; ++i) codes[i] = encode_eight<Format>(v[i], [&s](int j) { return s[j]; });
    if (job.health && job.col.counts)
      count<Format, false>(
          job, v, codes, beyond, [&s](int, int j) { return s[j]; }, tally);
    store_columns(job, at, codes, shared.codes);
  }
  if (job.health && ((job.row.counts && encodes(job.row.part)) || (job.col.counts && encodes(job.col.part))))
    report(job, at, tally, shared.reported);
}

/// The values of `held` rows, `beside` columns to the right.
template <bool aligned, class T, int held>
__device__ __forceinline__ void store_plain(const TileJob& job, const Spot& at, std::int64_t beside, const Eight<T> (&v)[held]) {
  const std::int64_t col = beside + at.col0 + at.c;
  const int rows = inside(job.rows, at.row0 + at.r, held), cols = inside(job.cols, col, 8);
  T* to = static_cast<T*>(job.plain) + (at.row0 + at.r) * job.cols + col;
  if (aligned && cols == 0) return;
#pragma unroll
  for (int i = 0; i < held; ++i, to += job.cols) {
    if (i >= rows) continue;
    if constexpr (aligned) {
      v[i].put(to);
    } else {
#pragma unroll
      for (int j = 0; j < 8; ++j)
        if (j < cols) v[i].put_one(to + j, j);
    }
  }
}

template <class T, bool aligned>
__device__ __forceinline__ void finish_tile(const TileJob& job, const Spot& at, Eight<T> (&v)[8], TileShared& shared) {
  if (job.plain != nullptr) store_plain<aligned>(job, at, 0, v);
  if (job.row.part == Part::nothing && job.col.part == Part::nothing) return;
  __syncthreads();  // the last tile's shared memory has been read
  collect_tops(job, at, v, shared);
  __syncthreads();
  const bool beyond = __syncthreads_or(find_scales(job, at, shared));
  if (job.e5m2) encode_tile<E5M2, aligned>(job, at, v, shared, beyond);
  else encode_tile<E4M3, aligned>(job, at, v, shared, beyond);
}

}  // namespace octet::cuda
