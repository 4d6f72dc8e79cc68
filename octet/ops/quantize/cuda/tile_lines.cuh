#pragma once

// Only for *.cuda.cu files: a tile of BF16 values whose scales are powers of two: one per 128 values of a row and of a column, computed
// here, or one per whole row and column, from maxima of a first pass. A thread has 8 x 8 values, or 4 x 8 of each of two outputs, and
// scales them in BF16, which is exact. Four blocks, or two of twice the threads, therefore fit a multiprocessor. See tile.cuh.

#include "octet/ops/quantize/cuda/tile_codes.cuh"

namespace octet::cuda {

/// Whether a pass is of this kind: counts and other scales need the general kernel.
inline bool works_by_lines(const TileJob& job) {
  const auto fits = [](const Side& side) {
    const bool blocks = side.part == Part::blocks && side.shift == 7 && !side.e8m0;
    return side.part == Part::nothing || blocks || side.part == Part::lines || side.part == Part::top_of_lines;
  };
  return !job.count && !job.noise && job.rule == ScaleRule::power_of_two && fits(job.row) && fits(job.col) &&
         (job.row.part != Part::nothing || job.col.part != Part::nothing);
}

template <int outputs>
inline constexpr int line_tile_threads = outputs* tile_threads;

/// Shared memory of a block, per output: maxima of rows and, of each warp's rows, of columns; then the scales, in BF16.
template <int outputs>
struct LineShared {
  static constexpr int warps = line_tile_threads<outputs> / 32;
  __align__(16) unsigned turned[outputs][tile_side * tile_side / 4];
  uint4 column_tops[outputs][warps][tile_side / 8];
  __align__(16) unsigned short row_tops[outputs][tile_side];
  __align__(16) unsigned short scales[2][outputs][tile_side];  // of rows, of columns

  __device__ __forceinline__ float row_top(int output, int line) const { return bf16_value(row_tops[output][line]); }
  __device__ __forceinline__ float column_top(int output, int line) const {
    unsigned short most = 0;
#pragma unroll
    for (int w = 0; w < warps; ++w) {
      const auto one = reinterpret_cast<const unsigned short*>(column_tops[output][w])[line];
      most = one > most ? one : most;
    }
    return bf16_value(most);
  }
  static __device__ __forceinline__ float bf16_value(unsigned short bits) { return __uint_as_float(unsigned(bits) << 16); }
};

/// Maxima of one output's rows and columns to shared memory. Returns how many of the values are not finite.
template <int outputs, int held>
__device__ __forceinline__ int collect_line_tops(const Eight<Bf16> (&v)[held], const Spot& at, int output, LineShared<outputs>& shared) {
  const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
  RowTops<held> rows(v);
#pragma unroll
  for (int step = 1; step < 16; step *= 2) rows.raise_from_lane(step);
  if (lane % 16 == 0) rows.put(&shared.row_tops[output][at.r]);

  Tops<Bf16> columns;
#pragma unroll
  for (int i = 0; i < held; ++i) columns.raise_or_nan(v[i]);
  int nonfinite = 0;
  if (__float_as_uint(columns.top()) >= infinity_bits) {  // rare
    columns = {};
#pragma unroll
    for (int i = 0; i < held; ++i) {
      columns.raise(v[i]);
#pragma unroll
      for (int j = 0; j < 8; ++j) nonfinite += !(fabsf(v[i][j]) < INFINITY);
    }
  }
  columns.raise_from_lane(16);
  if (lane < 16) shared.column_tops[output][warp][lane] = columns.magnitudes();
  return nonfinite;
}

/// Each thread turns one maximum into a scale, reads one, or leaves a maximum where they are collected: 128 rows and 128 columns of every
/// output.
template <int outputs>
__device__ __forceinline__ void find_line_scales(const TileJob& job, const Spot& at, std::int64_t width, LineShared<outputs>& shared) {
  const int thread = int(threadIdx.x), line = thread % tile_side, output = thread / tile_threads;
  const bool of_columns = thread / tile_side % 2 == 1;
  const Side& side = of_columns ? job.col : job.row;
  if (side.part == Part::nothing) return;  // all threads of a warp
  const std::int64_t col0 = at.col0 + output * width, line0 = of_columns ? col0 : at.row0,
                     block = (of_columns ? at.row0 : col0) / tile_side;
  const float amax = of_columns ? shared.column_top(output, line) : shared.row_top(output, line);
  bool is_inside = line0 + line < side.lines;
  unsigned scale = __float_as_uint(1.0f);
  if (side.part == Part::blocks) {
    const auto s = block_scale(amax, rule_of(job, side));
    scale = __float_as_uint(s.scale), is_inside &= block < side.blocks;
    if (is_inside) put_descale(side, line0 + line, block, s);
  } else if (is_inside && side.part == Part::lines) {
    scale = __float_as_uint(fabsf(side.scale[line0 + line]));
  } else if (is_inside) {
    raise(side.tops + line0 + line, amax);
  }
  shared.scales[of_columns][output][line] = static_cast<unsigned short>(scale >> 16);
  if (!side.counts) return;
  const unsigned top = __reduce_max_sync(~0u, __float_as_uint(amax));
  const unsigned greatest = __reduce_max_sync(~0u, is_inside ? scale : 0u);
  const unsigned least = __reduce_min_sync(~0u, is_inside ? scale : infinity_bits);
  if (thread % 32 != 0) return;
  if (job.amax) raise(job.amax, __uint_as_float(top));
  if (job.health && encodes(side.part) && greatest > 0) widen_range(job.health, __uint_as_float(least), __uint_as_float(greatest));
}

/// Two BF16 times two powers of two: exact, except for results that every format encodes as 0.
__device__ __forceinline__ unsigned scaled(unsigned x, unsigned s) {
  unsigned y;
  asm("mul.rn.bf16x2 %0, %1, %2;" : "=r"(y) : "r"(x), "r"(s));
  return y;
}
template <class Format>
__device__ __forceinline__ uint2 encode_scaled(const Eight<Bf16>& x, const uint4& s) {
  return encode_eight<Format>(
      Eight<Bf16>{{scaled(x.word[0], s.x), scaled(x.word[1], s.y), scaled(x.word[2], s.z), scaled(x.word[3], s.w)}});
}

template <class Format, int outputs, int held>
__device__ __forceinline__ void encode_rows(const TileJob& job, const Spot& at, int output, int width, const Eight<Bf16> (&v)[held],
                                            const LineShared<outputs>& shared) {
  const int rows = at.col0 + at.c < width ? inside(job.rows, at.row0 + at.r, held) : 0;
  std::uint8_t* to = job.row.codes + (at.row0 + at.r) * job.cols + output * width + at.col0 + at.c;
#pragma unroll
  for (int i = 0; i < held; ++i, to += job.cols) {
    const unsigned s = shared.scales[0][output][at.r + i] * 0x00010001u;
    const uint2 codes = encode_scaled<Format>(v[i], make_uint4(s, s, s, s));
    if (i < rows) *reinterpret_cast<uint2*>(to) = codes;
  }
}

template <class Format, int outputs, int held>
__device__ __forceinline__ void encode_columns(const Spot& at, int output, const Eight<Bf16> (&v)[held], LineShared<outputs>& shared) {
  const uint4 s = *reinterpret_cast<const uint4*>(&shared.scales[1][output][at.c]);
#pragma unroll
  for (int first = 0; first < held; first += 4) {
    uint2 codes[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) codes[i] = encode_scaled<Format>(v[first + i], s);
    put_columns(codes, at, (at.r + first) / 4 % 2, shared.turned[output]);
  }
}

template <class Format, class Make>
__global__ void __launch_bounds__(line_tile_threads<Make::outputs>, 4 / Make::outputs)
    line_tile_kernel(const __grid_constant__ TileJob job, const __grid_constant__ Make make) {
  constexpr int outputs = Make::outputs, held = 8 / outputs;
  __shared__ LineShared<outputs> shared;
  const int width = int(job.cols) / outputs;
  const Spot at = spot_of(job, width, held);
  Eight<Bf16> v[outputs][held];
  make_rows<Bf16>(make, int(job.rows), width, at, v);
  int nonfinite = 0;
#pragma unroll
  for (int k = 0; k < outputs; ++k) nonfinite += collect_line_tops(v[k], at, k, shared);
  __syncthreads();  // and every value of the tile has been made
  find_line_scales(job, at, width, shared);
  if (blockIdx.x == 0) {
    if (job.row.part == Part::blocks) fill_padding(job.row);
    if (job.col.part == Part::blocks) fill_padding(job.col);
  }
  if (job.plain != nullptr) {
#pragma unroll
    for (int k = 0; k < outputs; ++k) store_plain<true>(job, at, k * width, v[k]);
  }
  const bool by_rows = encodes(job.row.part), by_columns = encodes(job.col.part);
  if (!by_rows && !by_columns) return;
  __syncthreads();
  if (by_columns) {
#pragma unroll
    for (int k = 0; k < outputs; ++k) encode_columns<Format>(at, k, v[k], shared);
  }
  if (by_rows) {
#pragma unroll
    for (int k = 0; k < outputs; ++k) encode_rows<Format>(job, at, k, width, v[k], shared);
  }
  if (by_columns) {
    __syncthreads();
    const int output = int(threadIdx.x) / tile_threads;
    take_columns<true>(job, at, int(threadIdx.x) % tile_threads, std::int64_t(output) * width, width,
                       reinterpret_cast<const uint4*>(shared.turned[output]));
  }
  if (job.health) report_values(job, at, nonfinite);
}

template <class Make>
void run_line_tiles(Queue queue, unsigned blocks, const TileJob& job, const Make& make) {
  constexpr int threads = line_tile_threads<Make::outputs>;
  if (job.e5m2) line_tile_kernel<E5M2><<<blocks, threads, 0, queue>>>(job, make);
  else line_tile_kernel<E4M3><<<blocks, threads, 0, queue>>>(job, make);
}

}  // namespace octet::cuda
