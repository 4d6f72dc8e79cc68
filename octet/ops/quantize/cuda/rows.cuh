#pragma once

// Only for *.cuda.cu files: sinks of ops that need a statistic of a whole row. If the first pass only stores plain values and a maximum
// over all, rows are in registers and are read once. Otherwise a pass computes the statistics before the tiles (see tile.cuh).

#include "octet/ops/add/add.kernels.hpp"
#include "octet/ops/add/add.math.hpp"
#include "octet/ops/quantize/cuda/few_rows.cuh"
#include "octet/tensor/cuda/device.hpp"
#include "octet/tensor/cuda/held_row.cuh"

namespace octet::cuda {

// A Body has
//   find(lanes, cols, r, x)      the statistic of row r, which it stores and returns
//   known(r)                     the same, found before
//   scale(lanes, cols, s, x, y)  the row, its statistic known; both by the op's shared row bodies

/// Stores a row's values to memory and tracks their largest magnitude.
template <class T, int N>
struct StoredRow {
  T* to;
  bool asked;
  Pack<N> most{};
};
template <class T, int threads, int packs, int N>
struct StoringLanes : HeldLanes<threads, packs, N> {
  using Cursor = typename HeldLanes<threads, packs, N>::Cursor;
  __device__ __forceinline__ void store(StoredRow<T, N>* row, Cursor c, const Pack<N>& v) const {
    const uint4 q = packed<T>(v);
    *reinterpret_cast<uint4*>(row->to + c.at) = q;
    if (row->asked) row->most = larger(magnitude(unpacked<T>(q)), row->most);
  }
};

/// Blocks that share a multiprocessor. Where statistics are known, a row's weights can be read all at once.
template <int threads, bool known>
inline constexpr int blocks_that_fill = (known ? 1024 : 1280) / block_of<threads>;

/// A warp or a block per row. `top`, `amax`: places whose maximum is raised; both may be null.
template <class T, class Body, bool known, int threads, int packs>
__global__ void __launch_bounds__(block_of<threads>, blocks_that_fill<threads, known>)
    fill_rows_kernel(std::int64_t rows, std::int64_t cols, const T* x, T* y, float* top, float* amax, const Body body) {
  constexpr int N = 16 / int(sizeof(T)), groups = block_of<threads> / threads;
  const StoringLanes<T, threads, packs, N> lanes;
  StoredRow<T, N> out{nullptr, top || amax};
  const std::int64_t step = std::int64_t(gridDim.x) * groups;
  for (std::int64_t r = std::int64_t(blockIdx.x) * groups + int(threadIdx.x) / threads; r < rows; r += step) {
    const T* const from = x + r * cols;
    out.to = y + r * cols;
    if constexpr (known) {
      body.scale(lanes, cols, body.known(r), from, &out);
    } else {
      HeldRow<T, packs> in;
      lanes.fetch(from, cols, in);
      body.scale(lanes, cols, body.find(lanes, cols, r, &in), &in, &out);
    }
  }
  const float largest = warp_max(largest_of(out.most));
  if (threadIdx.x % 32 != 0) return;
  if (top) raise(top, largest);
  if (amax) raise(amax, largest);
}

/// A warp per row.
template <class T, class Body, int N>
__global__ void row_statistics_kernel(std::int64_t rows, std::int64_t cols, const T* x, const Body body) {
  const std::int64_t r = (std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x) / 32;
  if (r < rows) body.find(RowLanes<32, N>{}, cols, r, x + r * cols);
}
template <class T, class Body>
void find_row_statistics(Queue queue, const Tensor& x, const Body& body) {
  constexpr int threads = 256;
  const std::int64_t rows = x.shape[0], cols = x.shape[1];
  if (rows == 0) return;
  with_pack<T>(cols, [&]<int N>() {
    row_statistics_kernel<T, Body, N><<<unsigned(ceil_div(rows * 32, threads)), threads, 0, queue>>>(rows, cols, x.as<T>(), body);
  });
  launched("row_statistics_kernel");
}

inline bool wants_a_maximum_at_most(const Side& side) { return side.part == Part::nothing || side.part == Part::top_of_tensor; }

/// Rows in registers. Returns false and does nothing if they do not fit.
template <class T, class Body, bool known>
bool fill_held_rows(Queue queue, const ops::Sink& sink, const TileJob& job, const Tensor& x, const Body& body) {
  const std::int64_t rows = x.shape[0], cols = x.shape[1];
  return with_held_rows<T>(cols, [&]<int threads, int packs>() {
    const std::int64_t blocks = ceil_div(rows, block_of<threads> / threads);
    const std::int64_t most = facts().multiprocessors * blocks_that_fill<threads, known>;
    float* const top = job.row.tops ? job.row.tops : job.col.tops;
    fill_rows_kernel<T, Body, known, threads, packs><<<unsigned(blocks < most ? blocks : most), block_of<threads>, 0, queue>>>(
        rows, cols, x.as<T>(), sink.plain.as<T>(), top, job.amax, body);
    launched("fill_rows_kernel");
  });
}

/// How rows come.
struct Rows {
  bool aligned = false;  // tiles of them can be made in packs of 8
  bool known = false;    // their statistics are in memory
};

/// Fills the sink with rows of x as the body scales them. `make` makes tiles of them once the statistics are in memory.
template <class T, class Body, class Make>
void fill_sink_by_rows(Queue queue, const ops::Sink& sink, const Tensor& x, const Body& body, const Make& make, Rows how) {
  if (takes_few_rows(sink) && how.aligned && has_aligned_packs(sink)) {
    if (!how.known) find_row_statistics<T>(queue, x, body);
    fill_if_few<T>(queue, sink, make, true);
    return;
  }
  const TileJob job = first_job(queue, sink);
  const bool whole = x.shape[0] > 0 && sink.plain && how.aligned && has_aligned_packs(sink) && wants_a_maximum_at_most(job.row) &&
                     wants_a_maximum_at_most(job.col);
  if (whole &&
      (how.known ? fill_held_rows<T, Body, true>(queue, sink, job, x, body) : fill_held_rows<T, Body, false>(queue, sink, job, x, body)))
    return encode_waiting(queue, sink, sink.plain);
  if (!how.known) find_row_statistics<T>(queue, x, body);
  fill_sink<T>(queue, sink, job, make, how.aligned, {.last_first = true});
}

/// sum = a + b, and the statistics of its rows.
template <class T, class Body, int threads, int packs>
__global__ void __launch_bounds__(block_of<threads>, blocks_that_fill<threads, false>)
    add_rows_kernel(std::int64_t rows, std::int64_t cols, const T* a, const T* b, T* sum, const Body body) {
  constexpr int N = 16 / int(sizeof(T)), groups = block_of<threads> / threads;
  let_later_work_begin();
  wait_for_earlier_work();
  const HeldLanes<threads, packs, N> lanes;
  const std::int64_t r = std::int64_t(blockIdx.x) * groups + int(threadIdx.x) / threads, at = r * cols;
  if (r >= rows) return;
  HeldRow<T, packs> x, y;
  lanes.fetch(a + at, cols, x), lanes.fetch(b + at, cols, y);
  ops::add_row(lanes, cols, &x, &y, &x);
  lanes.put(x, cols, sum + at);
  body.find(lanes, cols, r, &x);
}

template <class Body>
void add_rows(Queue queue, const Tensor& a, const Tensor& b, const Tensor& sum, const Body& body) {
  const std::int64_t rows = sum.shape[0], cols = sum.shape[1];
  if (rows == 0) return;
  dispatch<float, Bf16, Fp16>(sum.dtype, "add_rows", [&]<class T>() {
    const bool held = with_held_rows<T>(cols, [&]<int threads, int packs>() {
      const Blocks blocks{
          .grid = dim3(unsigned(ceil_div(rows, block_of<threads> / threads))), .threads = block_of<threads>, .early = rows <= early_rows};
      launch_early("add_rows_kernel", add_rows_kernel<T, Body, threads, packs>, blocks, queue, rows, cols, a.as<T>(), b.as<T>(),
                   sum.as<T>(), body);
    });
    if (held) return;
    add(queue, a, b, sum);
    find_row_statistics<T>(queue, sum, body);
  });
}

}  // namespace octet::cuda
