#pragma once

// Only for *.cuda.cu files: a sink of up to eight rows, such as those of tokens that are generated, filled by one launch. Bits are those of
// tiles. Where scales follow from maxima of rows or of the tensor, blocks of a cluster exchange these before they encode. See tile.cuh.

#include <cooperative_groups.h>

#include "octet/ops/quantize/cuda/tile.cuh"
#include "octet/tensor/cuda/early.cuh"

namespace octet::cuda {

/// Whether a sink is filled so: codes, if any, are by rows, and are not measured.
inline bool takes_few_rows(const ops::Sink& sink) {
  const ops::QuantizeSpec& spec = sink.spec;
  const Quantized& q = sink.codes.rows;
  const bool plain = !spec.quantizes(), codes = q && !sink.codes.cols && !spec.amax && spec.health == nullptr && q.block.rows <= 1;
  return sink.shape[0] > 0 && sink.shape[0] <= early_rows && sink.shape[1] > 0 && (plain || codes);
}

namespace few_rows {

inline constexpr int threads = tile_threads, cluster_blocks = 8;

template <class T>
__device__ __forceinline__ void put_codes(const TileJob& job, int row, int col, const Eight<T>& v, float scale) {
  uint2* const to = reinterpret_cast<uint2*>(row_of(job.row.codes, row, int(job.cols)) + col);
  const auto of = [scale](int) { return scale; };
  *to = job.e5m2 ? encode_eight<E5M2>(v, of) : encode_eight<E4M3>(v, of);
}

/// The scale of a block of a row, which neighbouring lanes share; stores its descale.
template <class T>
__device__ __forceinline__ float scale_of_block(const TileJob& job, int row, int col, const Eight<T>& v) {
  const int reach = 1 << (job.row.shift - 3);
  Tops<T> tops;
  tops.raise(v);
  float top = tops.top();
#pragma unroll
  for (int step = 1; step < 16; step *= 2) {
    const float other = __shfl_xor_sync(~0u, top, step);
    if (step < reach) top = fmaxf(other, top);
  }
  const auto s = block_scale(top, rule_of(job, job.row));
  if (col < job.cols && int(threadIdx.x) % reach == 0) put_descale(job.row, row, col >> job.row.shift, s);
  return s.scale;
}

/// Values whose scale is known or that of a block of a row, or plain ones. A thread for eight values; grid: columns, rows.
template <class T, class Make>
__global__ void __launch_bounds__(threads) encode_made_kernel(const __grid_constant__ TileJob job, const __grid_constant__ Make make) {
  let_later_work_begin();
  wait_for_earlier_work();
  const int row = int(blockIdx.y), cols = int(job.cols), col = int(blockIdx.x * threads + threadIdx.x) * 8;
  Eight<T> v[1] = {};
  if (col < cols) make_eight<T>(make, row, col, v);
  if (col < cols && job.plain != nullptr) v[0].put(row_of(static_cast<T*>(job.plain), row, cols) + col);
  if constexpr (!std::is_same_v<T, Fp16>) {
    if (!encodes(job.row.part)) return;
    const float scale = job.row.part == Part::constant ? fabsf(*job.row.scale) : scale_of_block(job, row, col, v[0]);
    if (col < cols) put_codes(job, row, col, v[0], scale);
    if (job.row.part == Part::blocks && blockIdx.x == 0 && blockIdx.y == 0) fill_padding(job.row);
  }
}

/// The largest of the maxima of all threads of a cluster; `own` is this block's place for it, in shared memory.
template <int threads>
__device__ __forceinline__ float top_of_cluster(float top, float* own) {
  namespace groups = cooperative_groups;
  const groups::cluster_group cluster = groups::this_cluster();
  top = block_fold<threads>(top, MaxFold{});
  if (threadIdx.x == 0) *own = top;
  cluster.sync();
  const int blocks = int(cluster.num_blocks());
  for (int i = 0; i < blocks; ++i) top = fmaxf(*cluster.map_shared_rank(own, i), top);
  cluster.sync();  // and all have read it
  return top;
}

/// Eight values once more: those that were stored, or are made again.
template <class T, class Make>
__device__ __forceinline__ Eight<T> eight_again(const TileJob& job, const Make& make, int row, int col) {
  if (job.plain != nullptr) return Eight<T>::at(row_of(static_cast<const T*>(job.plain), row, int(job.cols)) + col);
  Eight<T> v[1];
  make_eight<T>(make, row, col, v);
  return v[0];
}

/// Values whose scale is that of their row, or of all rows. grid: the blocks of a cluster, and rows or 1.
template <class T, class Make>
__global__ void __launch_bounds__(threads) encode_by_top_kernel(const __grid_constant__ TileJob job, const __grid_constant__ Make make) {
  __shared__ float own;
  let_later_work_begin();
  wait_for_earlier_work();
  const int cols = int(job.cols), first = int(blockIdx.x * threads + threadIdx.x) * 8, step = cluster_blocks * threads * 8;
  Tops<T> tops;
  for (int row = int(blockIdx.y); row < job.rows; row += int(gridDim.y))
    for (int col = first; col < cols; col += step) {
      Eight<T> v[1];
      make_eight<T>(make, row, col, v);
      if (job.plain != nullptr) v[0].put(row_of(static_cast<T*>(job.plain), row, cols) + col);
      tops.raise(v[0]);
    }
  const auto s = block_scale(top_of_cluster<threads>(tops.top(), &own), rule_of(job, job.row));
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    if (job.row.e8m0) static_cast<std::uint8_t*>(job.row.descales)[blockIdx.y] = std::uint8_t(s.code);
    else static_cast<float*>(job.row.descales)[blockIdx.y] = s.descale;
  }
  for (int row = int(blockIdx.y); row < job.rows; row += int(gridDim.y))
    for (int col = first; col < cols; col += step) put_codes(job, row, col, eight_again<T>(job, make, row, col), s.scale);
}

template <class T, class Make>
void run_by_top(Queue queue, const TileJob& job, const Make& make) {
  const unsigned rows = job.row.part == Part::top_of_lines ? unsigned(job.rows) : 1;
  launch_early("encode_by_top_kernel", encode_by_top_kernel<T, Make>, {dim3(cluster_blocks, rows), threads, cluster_blocks}, queue, job,
               make);
}

}  // namespace few_rows

/// The pass in which such a sink's values are made, without its plain values.
TileJob few_rows_job(const ops::Sink&);

/// The work of takes_few_rows(). `make` makes packs of eight of one output.
template <class T, class Make>
void fill_few_rows(Queue queue, const TileJob& job, const Make& make) {
  if constexpr (!std::is_same_v<T, Fp16>) {
    if (job.row.part == Part::top_of_tensor || job.row.part == Part::top_of_lines) return few_rows::run_by_top<T>(queue, job, make);
  }
  const dim3 grid(unsigned(ceil_div(job.cols, 8 * few_rows::threads)), unsigned(job.rows));
  launch_early("encode_made_kernel", few_rows::encode_made_kernel<T, Make>, {grid, few_rows::threads}, queue, job, make);
}

/// Fills a sink of few rows by one launch. False, and nothing is done, for others.
template <class T, class Make>
bool fill_if_few(Queue queue, const ops::Sink& sink, const Make& make, bool aligned) {
  if (!aligned || !has_aligned_packs(sink) || !takes_few_rows(sink)) return false;
  TileJob job = few_rows_job(sink);
  job.plain = sink.plain.data;
  fill_few_rows<T>(queue, job, make);
  return true;
}

}  // namespace octet::cuda
