#pragma once

// Only for *.cuda.cu files: a tile of BF16 values without dependencies, because all codes have one scale in memory, or because no codes are
// stored yet. Values are encoded and stored as they are computed, so a thread needs few registers, and a block synchronizes at most once.
// See tile.cuh.

#include "octet/ops/quantize/cuda/tile_codes.cuh"
#include "octet/ops/quantize/cuda/tile_values.cuh"

namespace octet::cuda {

/// Whether a pass is of this kind, and health counts these codes, if any. Plain values of two outputs need too many registers.
template <class Make>
bool encodes_as_made(const TileJob& job) {
  const auto fits = [](const Side& side) { return side.part == Part::nothing || side.part == Part::constant; };
  return (job.plain == nullptr || Make::outputs == 1) && fits(job.row) && fits(job.col) &&
         (encodes(job.row.part) || (encodes(job.col.part) && (job.health == nullptr || job.col.counts)));
}

/// Maxima of magnitudes, two BF16; NaN where one was met.
struct Seen {
  unsigned most = 0;

  __device__ __forceinline__ void add(const Eight<Bf16>& v) {
#pragma unroll
    for (int j = 0; j < 4; ++j) most = larger_magnitudes_or_nan(v.word[j], most);
  }
  /// The bits of a float.
  __device__ __forceinline__ unsigned top() const { return max(most & 0x7FFFu, most >> 16 & 0x7FFFu) << 16; }
};

/// Results of one thread.
template <bool measures>
struct Collected {
  Seen seen;
};
template <>
struct Collected<true> {
  Seen seen;
  Squares squares;
  unsigned values = 0;  // that are not 0, in two halves
  int codes = 0;        // that are not 0
};

/// Rows `first` to first + 3 of this thread's eight: their codes to memory by rows, and to `turned` (see take_columns).
template <class Format, bool keeps_plain, bool measures, class Make>
__device__ __forceinline__ void encode_four_rows(const TileJob& job, const Make& make, const Spot& at, int first, float scale,
                                                 Collected<measures>& all, unsigned (*turned)[tile_side * tile_side / 4]) {
  const int width = int(job.cols) / Make::outputs, row = int(at.row0) + at.r + first, col = int(at.col0) + at.c;
  const int last = int(job.rows) - 1, bounded_col = col < width ? col : width - 8;
  uint2 codes[Make::outputs][4];
  Eight<Bf16> plain[keeps_plain ? 4 : 1];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    Eight<Bf16> v[Make::outputs];
    make_eight<Bf16>(make, min(row + i, last), bounded_col, v);
#pragma unroll
    for (int k = 0; k < Make::outputs; ++k) {
      if (measures && (row + i > last || col >= width)) v[k] = {};  // outside the matrix
      all.seen.add(v[k]);
      codes[k][i] = encode_eight<Format>(v[k], [scale](int) { return scale; });
      if constexpr (measures) {
        all.squares.template add<Format>(v[k], codes[k][i], scale);
        all.values += v[k].nonzero();
      }
    }
    if (keeps_plain) plain[i] = v[0];
  }
  if (keeps_plain && col < width) {
    Bf16* const to = static_cast<Bf16*>(job.plain) + row * job.cols + col;
#pragma unroll
    for (int i = 0; i < 4; ++i)
      if (row + i <= last) plain[keeps_plain ? i : 0].put(to + i * job.cols);
  }
#pragma unroll
  for (int k = 0; k < Make::outputs; ++k) {
    if (job.row.part != Part::nothing && col < width) {
      std::uint8_t* const to = job.row.codes + row * job.cols + k * width + col;
#pragma unroll
      for (int i = 0; i < 4; ++i)
        if (row + i <= last) *reinterpret_cast<uint2*>(to + i * job.cols) = codes[k][i];
    }
    if (job.col.part != Part::nothing) put_columns(codes[k], at, first / 4, turned[k]);
    if constexpr (measures) all.codes += nonzero_of(codes[k]);
  }
}

/// Shared memory of a block.
template <int outputs, bool measures>
struct KnownShared {
  __align__(16) unsigned turned[outputs][tile_side * tile_side / 4];
};
template <int outputs>
struct KnownShared<outputs, true> {
  __align__(16) unsigned turned[outputs][tile_side * tile_side / 4];
  Reported reported;
};

/// The scale of the orientations that have codes. Only values that were stored before can have a maximum in memory.
template <class Make>
__device__ __forceinline__ float scale_of_both(const TileJob& job, const Spot& at) {
  if constexpr (!is_stored<Make>) {
    return fabsf(*(job.row.part == Part::constant ? job.row.scale : job.col.scale));
  } else {
    const bool stores = at.row0 == 0 && at.col0 == 0 && threadIdx.x == 0;
    const float of_columns = job.col.part == Part::constant ? constant_scale(job, job.col, stores) : 0.0f;
    return job.row.part == Part::constant ? constant_scale(job, job.row, stores) : of_columns;
  }
}

template <class Format, bool keeps_plain, bool measures, class Make>
__device__ __forceinline__ void encode_as_made(const TileJob& job, const Make& make, const Spot& at,
                                               KnownShared<Make::outputs, measures>& shared) {
  const std::int64_t width = job.cols / Make::outputs;
  const float scale = scale_of_both<Make>(job, at);
  Collected<measures> all;
  if (job.rows > 0 && width > 0) {
#pragma unroll 1
    for (int first = 0; first < 8; first += 4)
      encode_four_rows<Format, keeps_plain, measures>(job, make, at, first, scale, all, shared.turned);
  }
  if (job.col.part != Part::nothing) {
    __syncthreads();
#pragma unroll
    for (int k = 0; k < Make::outputs; ++k)
      take_columns<true>(job, at, int(threadIdx.x), k * width, width, reinterpret_cast<const uint4*>(shared.turned[k]));
  }
  unsigned top = all.seen.top();
  const float scaled = __uint_as_float(top) * scale;
  const bool fast = top < infinity_bits && (!measures || (scaled <= Format::nearest_to_max && !squares_vanish(scaled)));
  Tally tally;
  if (!fast) {
    const Odd odd = look_again<Format, measures>(job, make, at, scale, 8);
    top = __float_as_uint(odd.top), tally = odd.tally;
  } else if constexpr (measures) {
    tally.flushed = sum_of_halves(all.values) - all.codes;
    all.squares.add_to(tally, descale_of(job, scale));
  }
  top = __reduce_max_sync(~0u, top);
  if (job.amax && threadIdx.x % 32 == 0) raise(job.amax, __uint_as_float(top));
  if (!job.health) return;
  if constexpr (measures) report(job, at, tally, shared.reported);
  else report_values(job, at, tally.nonfinite);
  if (blockIdx.x == 0 && threadIdx.x == 0) widen_range(job.health, scale, scale);
}

/// Blocks that share a multiprocessor.
template <bool keeps_plain, bool measures, class Make>
inline constexpr int known_blocks = keeps_plain&& measures                            ? 2
                                    : Make::outputs == 1 && !keeps_plain && !measures ? 4
                                                                                      : 3;

template <bool keeps_plain, bool measures, class Make>
__global__ void __launch_bounds__(tile_threads, known_blocks<keeps_plain, measures, Make>)
    known_tile_kernel(const __grid_constant__ TileJob job, const __grid_constant__ Make make) {
  __shared__ KnownShared<Make::outputs, measures> shared;
  const Spot at = spot_of(job, job.cols / Make::outputs);
  if (job.e5m2) encode_as_made<E5M2, keeps_plain, measures>(job, make, at, shared);
  else encode_as_made<E4M3, keeps_plain, measures>(job, make, at, shared);
}

template <bool measures, class Make>
void run_known_tiles(Queue queue, unsigned blocks, const TileJob& job, const Make& make) {
  if constexpr (Make::outputs == 1) {
    if (job.plain != nullptr) return known_tile_kernel<true, measures><<<blocks, tile_threads, 0, queue>>>(job, make);
  }
  known_tile_kernel<false, measures><<<blocks, tile_threads, 0, queue>>>(job, make);
}
template <class Make>
void run_known_tiles(Queue queue, unsigned blocks, const TileJob& job, const Make& make) {
  if (job.count || job.noise) run_known_tiles<true>(queue, blocks, job, make);
  else run_known_tiles<false>(queue, blocks, job, make);
}

/// Whether a pass stores plain values and needs at most the maximum of all: two outputs would occupy too many registers until the end.
inline bool stores_as_made(const TileJob& job) {
  const auto fits = [](const Side& side) { return side.part == Part::nothing || side.part == Part::top_of_tensor; };
  return job.plain != nullptr && fits(job.row) && fits(job.col);
}

template <class T, class Make>
__global__ void __launch_bounds__(tile_threads, 3)
    plain_tile_kernel(const __grid_constant__ TileJob job, const __grid_constant__ Make make) {
  const int width = int(job.cols) / Make::outputs, last = int(job.rows) - 1;
  const Spot at = spot_of(job, width);
  const int row = int(at.row0) + at.r, col = int(at.col0) + at.c, bounded_col = col < width ? col : width - 8;
  constexpr bool may_be_encoded = std::is_same_v<T, Bf16>;
  std::conditional_t<may_be_encoded, Tops<Bf16>, int> tops{};
#pragma unroll 1
  for (int first = row; first < row + 8; first += 4) {
    Eight<T> v[4][Make::outputs];
#pragma unroll
    for (int i = 0; i < 4; ++i) make_eight<T>(make, min(first + i, last), bounded_col, v[i]);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (first + i > last || col >= width) continue;
#pragma unroll
      for (int k = 0; k < Make::outputs; ++k) {
        if constexpr (may_be_encoded) tops.raise(v[i][k]);
        v[i][k].put(static_cast<T*>(job.plain) + (first + i) * job.cols + k * width + col);
      }
    }
  }
  if constexpr (may_be_encoded) {
    float* const top = job.row.tops ? job.row.tops : job.col.tops;
    if (top == nullptr && job.amax == nullptr) return;
    const float most = __uint_as_float(__reduce_max_sync(~0u, __float_as_uint(tops.top())));
    if (threadIdx.x % 32 != 0) return;
    if (top) raise(top, most);
    if (job.amax) raise(job.amax, most);
  }
}

/// Values of one output, one per thread.
template <class T, class Make>
__global__ void __launch_bounds__(tile_threads)
    plain_values_kernel(const __grid_constant__ TileJob job, const __grid_constant__ Make make) {
  const std::int64_t i = std::int64_t(blockIdx.x) * tile_threads + threadIdx.x;
  if (i >= job.rows * job.cols) return;
  Pack<1> one[1];
  make.template make<1>(int(i / job.cols), int(i % job.cols), one);
  store(static_cast<T*>(job.plain), i, one[0]);
}

/// A matrix whose values are only stored.
template <class T, class Make>
void store_values(Queue queue, unsigned tiles, const TileJob& job, const Make& make, bool aligned) {
  const std::int64_t values = job.rows * job.cols;
  if (values == 0) return;
  if (aligned) plain_tile_kernel<T><<<tiles, tile_threads, 0, queue>>>(job, make);
  else if constexpr (Make::outputs == 1)
    plain_values_kernel<T><<<unsigned(ceil_div(values, tile_threads)), tile_threads, 0, queue>>>(job, make);
}

}  // namespace octet::cuda
