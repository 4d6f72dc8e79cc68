#pragma once

// Only for *.cuda.cu files: how a GPU producer fills a Sink. A block makes a tile of 128 x 128 values, 8 rows x 8 columns per thread, in
// registers, and stores its plain values and its codes in both orientations. BF16 values whose scale is known, plain ones of two outputs,
// and FP16 values, which are never encoded, are stored as they are computed (tile_known.cuh).
//
// A producer has
//   static constexpr int outputs;   1, or 2: it makes columns c and half + c of the matrix at once
//   make<N>(row, col, Pack<N> (&out)[outputs])   values [row, col .. col + N) of each output, N = 8 (aligned) or 1
//   static constexpr bool only_packs;   optional: it makes packs of 8 alone, as one of two outputs does
//   static constexpr bool rare;   optional: of shapes that no large model has, so the general kernel makes them all
// and usually calls the op's shared row body with PackLanes.

#include "octet/ops/quantize/cuda/tile_known.cuh"
#include "octet/ops/quantize/cuda/tile_lines.cuh"
#include "octet/tensor/cuda/check.cuh"

namespace octet::cuda {

template <class T, int outputs>
using TileValues = Eight<T>[outputs][8];

/// This thread's values of a tile; 0 outside the matrix. `width` is how many columns each output has.
template <class T, bool aligned, class Make>
__device__ __forceinline__ void make_tile(const Make& make, int rows, int width, const Spot& at, TileValues<T, Make::outputs>& v) {
  if constexpr (aligned) {
    make_rows<T>(make, rows, width, at, v);
  } else {
    const int row = int(at.row0) + at.r, col = int(at.col0) + at.c;
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
  Spot at = spot_of(job, width);
  TileValues<T, Make::outputs> v;
  make_tile<T, aligned>(make, int(job.rows), int(width), at, v);
  // A loop over the outputs shares the registers of one: less code, which runs once, is fetched faster.
#pragma unroll 1
  for (int k = 0; k < Make::outputs; ++k, at.col0 += width) {
    finish_tile<T, aligned>(job, at, v[0], shared);
    if constexpr (Make::outputs == 2) {
#pragma unroll
      for (int i = 0; i < 8; ++i) v[0][i] = v[1][i];
    }
  }
}

/// Whether a producer also makes single values, for matrices whose packs of 8 are not aligned.
template <class Make>
constexpr bool makes_single_values() {
  if constexpr (requires { Make::only_packs; }) return Make::outputs == 1 && !Make::only_packs;
  else return Make::outputs == 1;
}

template <class Make>
constexpr bool is_rare() {
  if constexpr (requires { Make::rare; }) return Make::rare;
  else return false;
}

/// One pass over the matrix.
template <class T, class Make>
void run_tiles(Queue queue, const TileJob& job, const Make& make, bool aligned) {
  static_assert(Make::outputs <= 2);
  check(aligned || makes_single_values<Make>(), "tiles: a producer of packs of 8 got a matrix whose packs are not aligned");
  const std::int64_t tiles = ceil_div(job.rows, tile_side) * ceil_div(job.cols / Make::outputs, tile_side);
  const unsigned blocks = tiles > 0 ? unsigned(tiles) : 1;  // an empty matrix, too, has a scale and counts
  if constexpr (std::is_same_v<T, Bf16> && !is_rare<Make>()) {
    if (aligned && tiles > 0 && stores_as_made(job)) {
      plain_tile_kernel<T><<<blocks, tile_threads, 0, queue>>>(job, make);
      return launched("plain_tile_kernel");
    }
    if (aligned && tiles > 0 && works_by_lines(job)) return run_line_tiles(queue, blocks, job, make), launched("line_tile_kernel");
    if (aligned && encodes_as_made<Make>(job)) return run_known_tiles(queue, blocks, job, make), launched("known_tile_kernel");
  }
  if constexpr (std::is_same_v<T, Fp16>) {
    store_values<T>(queue, blocks, job, make, aligned);
  } else {
    if (aligned) tile_kernel<T, true><<<blocks, tile_threads, 0, queue>>>(job, make);
    else if constexpr (makes_single_values<Make>()) tile_kernel<T, false><<<blocks, tile_threads, 0, queue>>>(job, make);
  }
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
/// Whether both halves of a sink's columns are multiples of a tile.
inline bool splits_into_tiles(const ops::Sink& sink) { return sink.shape[1] % (2 * tile_side) == 0; }

/// Properties of a producer for fill_sink().
struct Fill {
  bool last_first = false;  // its input has just been read or written from the first row to the last
};

/// Fills the sink with the producer's values, of T (sink.dtype). `aligned`: the producer can make packs of 8; one of two outputs must, and
/// its halves must be multiples of the tile (see splits_into_tiles). `job`: first_job() of the sink.
template <class T, class Make>
void fill_sink(Queue queue, const ops::Sink& sink, TileJob job, const Make& make, bool aligned, Fill how = {}) {
  job.plain = sink.plain.data, job.last_first = how.last_first;
  run_tiles<T>(queue, job, make, aligned && has_aligned_packs(sink));
  encode_waiting(queue, sink, sink.plain);
}
template <class T, class Make>
void fill_sink(Queue queue, const ops::Sink& sink, const Make& make, bool aligned, Fill how = {}) {
  fill_sink<T>(queue, sink, first_job(queue, sink), make, aligned, how);
}

}  // namespace octet::cuda
