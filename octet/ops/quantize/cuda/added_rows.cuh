#pragma once

// Only for *.cuda.cu files: sinks of ops that add to their rows first and then need a statistic of each. Few rows, such as those of tokens
// that are generated, take one launch: a block has a row in registers, from its sum to its codes. Other rows take those of their parts.

#include <bit>

#include "octet/ops/quantize/cuda/rows.cuh"

namespace octet::cuda {

namespace few_rows {

/// The scale of a row, or of all rows of a cluster, from their largest magnitude; stores its descale.
template <int threads>
__device__ __forceinline__ float scale_of_top(const TileJob& job, float top, float* own) {
  const auto s = block_scale(top_of_cluster<threads>(top, own), rule_of(job, job.row));
  const bool of_tensor = job.row.part == Part::top_of_tensor;
  if (threadIdx.x == 0 && (!of_tensor || blockIdx.x == 0)) {
    const int at = of_tensor ? 0 : int(blockIdx.x);
    if (job.row.e8m0) static_cast<std::uint8_t*>(job.row.descales)[at] = std::uint8_t(s.code);
    else static_cast<float*>(job.row.descales)[at] = s.descale;
  }
  return s.scale;
}

__device__ __forceinline__ Eight<Bf16> eight_of(uint4 q) { return {{q.x, q.y, q.z, q.w}}; }

/// The codes of a block's row, in one of the ways of encode_made_kernel() and encode_by_top_kernel(). Rows behind the last one are zeros.
template <int threads, int packs>
__device__ __forceinline__ void encode_held_row(const TileJob& job, const HeldRow<Bf16, packs>& y, float* own) {
  const int row = int(blockIdx.x), cols = int(job.cols);
  const bool by_top = job.row.part == Part::top_of_tensor || job.row.part == Part::top_of_lines;
  float scale = 0;
  if (by_top) {
    Tops<Bf16> tops;
#pragma unroll
    for (int p = 0; p < packs; ++p) tops.raise(eight_of(y.pack[p]));
    scale = scale_of_top<threads>(job, tops.top(), own);
  } else if (job.row.part == Part::constant) {
    scale = fabsf(*job.row.scale);
  }
  if (row >= job.rows) return;
#pragma unroll
  for (int p = 0; p < packs; ++p) {
    const int col = (p * threads + int(threadIdx.x)) * 8;
    if (job.row.part == Part::blocks) scale = scale_of_block(job, row, col, eight_of(y.pack[p]));
    if (col < cols) put_codes(job, row, col, eight_of(y.pack[p]), scale);
  }
  if (job.row.part == Part::blocks && row == 0) fill_padding(job.row);
}

/// x += added, then the row as the body scales it. A block per row; where one scale is that of all rows, they are a cluster.
template <class T, class Body, int threads, int packs>
__global__ void __launch_bounds__(threads)
    add_and_fill_kernel(const __grid_constant__ TileJob job, T* x, const T* added, const __grid_constant__ Body body) {
  __shared__ float own;
  static_assert(threads >= tile_threads);  // of fill_padding()
  const HeldLanes<threads, packs, 8> lanes;
  const int row = int(blockIdx.x), cols = int(job.cols);
  let_later_work_begin();
  if (threadIdx.x == 0) body.prefetch_weights(cols);
  wait_for_earlier_work();
  HeldRow<T, packs> in{}, out{};
  if (row < job.rows) {
    HeldRow<T, packs> other;
    lanes.fetch(row_of(x, row, cols), cols, in), lanes.fetch(row_of(added, row, cols), cols, other);
    const auto add = [&] {
      ops::add_row(lanes, cols, &in, &other, &in);
      lanes.put(in, cols, row_of(x, row, cols));
    };
    if constexpr (packs == 1) {
      const typename Body::Held weights(lanes, cols, body);  // loaded beside the row
      add();
      weights.scale(lanes, cols, body, body.find(lanes, cols, row, &in), &in, &out);
    } else {
      add();
      body.scale(lanes, cols, body.find(lanes, cols, row, &in), &in, &out);
    }
    if (job.plain != nullptr) lanes.put(out, cols, row_of(static_cast<T*>(job.plain), row, cols));
  }
  if constexpr (std::is_same_v<T, Bf16>) {
    if (job.row.part != Part::nothing) encode_held_row<threads, packs>(job, out, &own);
  }
}

/// Calls f.operator()<threads, packs>() with the fewest that hold rows of `cols` values of 16 bits, eight to a pack.
template <class F>
void with_threads_of_row(std::int64_t cols, const F& f) {
  if (cols <= 256 * 8) f.template operator()<256, 1>();
  else if (cols <= 512 * 8) f.template operator()<512, 1>();
  else f.template operator()<512, 2>();
}
inline constexpr std::int64_t longest_row = 512 * 2 * 8;

template <class T, class Body>
void add_and_fill(Queue queue, const TileJob& job, const Tensor& x, const Tensor& added, const Body& body) {
  const unsigned rows = unsigned(job.rows), cluster = job.row.part == Part::top_of_tensor ? std::bit_ceil(rows) : 1;
  with_threads_of_row(job.cols, [&]<int threads, int packs>() {
    launch_early("add_and_fill_kernel", add_and_fill_kernel<T, Body, threads, packs>,
                 {dim3(cluster > 1 ? cluster : rows), threads, cluster}, queue, job, x.as<T>(), added.as<T>(), body);
  });
}

}  // namespace few_rows

/// fill_sink_by_rows() of rows to which `added` is added first, in place: their statistics are not known. A Body has, too,
///   prefetch_weights(cols)                 a hint: its values per column will be read
///   Held(lanes, cols, body)                these values of one pack per thread in registers, loaded beside the row
///   Held::scale(lanes, cols, body, s, x, y)  as scale()
template <class T, class Body, class Make>
void add_and_fill_sink(Queue queue, const ops::Sink& sink, const Tensor& x, const Tensor& added, const Body& body, const Make& make,
                       bool aligned) {
  if constexpr (sizeof(T) == 2) {
    if (aligned && packs_of_eight(added) && has_aligned_packs(sink) && takes_few_rows(sink) && sink.shape[1] <= few_rows::longest_row) {
      TileJob job = few_rows_job(sink);
      job.plain = sink.plain.data;
      return few_rows::add_and_fill<T>(queue, job, x, added, body);
    }
  }
  add_rows(queue, x, added, x, body);
  fill_sink_by_rows<T>(queue, sink, x, body, make, {.aligned = aligned, .known = true});
}

}  // namespace octet::cuda
