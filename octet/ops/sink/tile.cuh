#pragma once

// Only for *.cuda.cu files: how a GPU producer fills a Sink. A block makes a tile of 128 x 128 values, 8 rows x 8 columns a thread, keeps
// it in registers, and puts its plain values and its codes, in both orientations, where they belong.
//
// A producer has
//   static constexpr int outputs;   1, or 2: it makes columns c and half + c of the matrix at once
//   make<N>(row, col, Pack<N> (&out)[outputs])   values [row, col .. col + N) of each output, N = 8 (aligned) or 1
// and usually calls the op's shared row body with PackLanes.

#include "octet/ops/sink/tile_codes.cuh"
#include "octet/tensor/cuda/check.cuh"

namespace octet::cuda {

/// Lanes of a row body that walks one pack only: the N values from column `at` on.
template <int N>
struct PackLanes {
  using Value = Pack<N>;
  std::int64_t at;

  template <class F>
  __device__ __forceinline__ void each(std::int64_t, F&& f) const {
    f(at);
  }
  template <class T>
  __device__ __forceinline__ Value load(const T* p, std::int64_t i) const {
    return cuda::load<N>(p, i);
  }
  template <class Place>
  __device__ __forceinline__ void store(Place place, std::int64_t, const Value& v) const {
    *place.first = v;
  }
};

/// Where a row body "stores": registers. What it stores half a row further goes to `second`.
template <int N>
struct Kept {
  Pack<N>*first, *second = nullptr;
  __device__ __forceinline__ Kept operator+(std::int64_t) const { return {second}; }
};

/// The values that stand in memory, of T, as what the sink's type makes of them.
template <class From, class T>
struct Stored {
  static constexpr int outputs = 1;
  const From* values;
  std::int64_t cols;

  template <int N>
  __device__ __forceinline__ void make(std::int64_t row, std::int64_t col, Pack<N> (&out)[1]) const {
    out[0] = load<N>(values, row * cols + col);
  }
  /// Without a detour through floats.
  __device__ __forceinline__ Eight<T> eight(std::int64_t row, std::int64_t col) const requires(std::is_same_v<From, T>) {
    return Eight<T>::at(values + row * cols + col);
  }
};

template <class T, int outputs>
using TileValues = Eight<T>[outputs][8];

template <class T, class Make>
__device__ __forceinline__ void make_eight(const Make& make, std::int64_t row, std::int64_t col, int i, TileValues<T, Make::outputs>& v) {
  if constexpr (requires { make.eight(row, col); }) {
    v[0][i] = make.eight(row, col);
  } else {
    Pack<8> out[Make::outputs];
    make.template make<8>(row, col, out);
#pragma unroll
    for (int k = 0; k < Make::outputs; ++k) v[k][i] = Eight<T>::of(out[k]);
  }
}

/// This thread's values of a tile; 0 outside the matrix. `width` is how many columns each output has.
template <class T, bool aligned, class Make>
__device__ __forceinline__ void make_tile(const Make& make, std::int64_t rows, std::int64_t width, const Spot& at,
                                          TileValues<T, Make::outputs>& v) {
  const std::int64_t row = at.row0 + at.r, col = at.col0 + at.c;
  if constexpr (aligned) {
    // Addresses are bounded rather than loads skipped, so that all loads can be under way at once.
    const std::int64_t bounded_col = col < width ? col : width - 8;
    if (rows > 0 && width > 0) {
#pragma unroll
      for (int i = 0; i < 8; ++i) make_eight<T>(make, row + i < rows ? row + i : rows - 1, bounded_col, i, v);
    }
    if (at.row0 + tile_side <= rows && at.col0 + tile_side <= width) return;
#pragma unroll
    for (int k = 0; k < Make::outputs; ++k) {
#pragma unroll
      for (int i = 0; i < 8; ++i)
        if (row + i >= rows || col >= width) v[k][i] = Eight<T>{};
    }
  } else {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      Pack<8> wide{};
#pragma unroll 1
      for (int j = 0; j < 8; ++j) {
        Pack<1> one[1]{};
        if (row + i < rows && col + j < width) make.template make<1>(row + i, col + j, one);
        wide.v[j] = one[0].v[0];
      }
      v[0][i] = Eight<T>::of(wide);
    }
  }
}

/// Blocks that share a multiprocessor: one more where the registers suffice for the usual paths, though not for those that count odd
/// values.
template <class T, bool aligned, int outputs>
inline constexpr int blocks_at_once = std::is_same_v<T, Bf16>&& aligned&& outputs == 1 ? 3 : 2;

template <class T, bool aligned, class Make>
__global__ void __launch_bounds__(tile_threads, blocks_at_once<T, aligned, Make::outputs>)
    tile_kernel(const __grid_constant__ TileJob job, const __grid_constant__ Make make) {
  __shared__ TileShared shared;
  const std::int64_t width = job.cols / Make::outputs;
  Spot at = spot_of(width);
  TileValues<T, Make::outputs> v;
  make_tile<T, aligned>(make, job.rows, width, at, v);
  if (job.in_place) __syncthreads();
    // The outputs go round through the registers of one: less code, which is run once, is fetched faster.
#pragma unroll 1
  for (int k = 0; k < Make::outputs; ++k, at.col0 += width) {
    finish_tile<T, aligned>(job, at, v[0], shared);
    if constexpr (Make::outputs == 2) {
#pragma unroll
      for (int i = 0; i < 8; ++i) v[0][i] = v[1][i];
    }
  }
}

/// One pass over the matrix.
template <class T, class Make>
void run_tiles(Queue queue, const TileJob& job, const Make& make, bool aligned) {
  static_assert(Make::outputs <= 2);
  const std::int64_t tiles = ceil_div(job.rows, tile_side) * ceil_div(job.cols / Make::outputs, tile_side);
  const unsigned blocks = tiles > 0 ? unsigned(tiles) : 1;  // an empty matrix, too, has a scale and counts
  if (aligned)
    tile_kernel<T, true><<<blocks, tile_threads, 0, queue>>>(job, make);
  else if constexpr (Make::outputs == 1)
    tile_kernel<T, false><<<blocks, tile_threads, 0, queue>>>(job, make);
  launched("tile_kernel");
}

/// Whether 8 values from a column that is a multiple of 8 can be read at once.
inline bool packs_of_eight(const Tensor& t) {
  return t.shape[t.shape.rank - 1] % 8 == 0 && reinterpret_cast<std::uintptr_t>(t.data) % 16 == 0;
}
/// Whether 8 values and codes of a sink can be written at once.
inline bool has_aligned_packs(const ops::Sink& sink) {
  const auto address = reinterpret_cast<std::uintptr_t>(sink.plain.data) |
                       reinterpret_cast<std::uintptr_t>(sink.spec.quantizes() ? sink.codes.rows.codes.data : nullptr);
  return sink.shape[1] % 8 == 0 && address % 16 == 0;
}
/// Whether both halves of a sink's columns are whole tiles.
inline bool splits_into_tiles(const ops::Sink& sink) { return sink.shape[1] % (2 * tile_side) == 0; }

/// Fills the sink with what the producer makes, of T (sink.dtype). `aligned` says whether the producer can make packs of 8; one of two
/// outputs must, and its halves must be multiples of the tile (see splits_into_tiles).
template <class T, class Make>
void fill_sink(Queue queue, const ops::Sink& sink, const Make& make, bool aligned, bool in_place = false) {
  TileJob job = first_job(queue, sink);
  job.plain = sink.plain.data, job.in_place = in_place;
  run_tiles<T>(queue, job, make, aligned && has_aligned_packs(sink));
  encode_waiting(queue, sink, sink.plain);
}

}  // namespace octet::cuda
