#include "octet/ops/embedding/embedding.kernels.hpp"
#include "octet/tensor/cuda/check.cuh"
#include "octet/tensor/cuda/lanes.cuh"

namespace octet::cuda {
namespace {

constexpr int threads = 256, rows_a_block = threads / 32;

// A warp for each token.
template <class Table, class T, int N>
__global__ void embedding_forward_kernel(std::int64_t tokens, std::int64_t cols, std::int64_t vocabulary, std::int64_t length, const std::int32_t* ids,
                                         const Table* table, const float* positions, T* out) {
  const std::int64_t t = std::int64_t(blockIdx.x) * rows_a_block + threadIdx.x / 32;
  if (t >= tokens) return;
  const RowLanes<32, N> lanes;
  const std::int64_t id = ids[t];
  const bool known = id >= 0 && id < vocabulary;
  lanes.each(cols, [&](std::int64_t at) {
    Pack<N> v = known ? lanes.load(table + id * cols, at) : Pack<N>::all(__int_as_float(0x7FC00000));
    if (positions != nullptr) v = v + lanes.load(positions + t % length * cols, at);
    lanes.store(out + t * cols, at, v);
  });
}

// Adds dy of the tokens that `rest` (one bit a token, from `base` on) names to sum, in order; loads come some at a time.
template <class T, int N>
__device__ Pack<N> add_matches(unsigned rest, std::int64_t base, std::int64_t cols, const T* dy, Pack<N> sum) {
  constexpr int together = 4;
  while (rest != 0) {
    Pack<N> rows[together];
    int n = 0;
#pragma unroll
    for (int i = 0; i < together; ++i) {
      if (rest == 0) continue;
      rows[i] = load<N>(dy + (base + __ffs(int(rest)) - 1) * cols, 0);
      rest &= rest - 1, n = i + 1;
    }
#pragma unroll
    for (int i = 0; i < together; ++i)
      if (i < n) sum = sum + rows[i];
  }
  return sum;
}

// Whether an earlier token has the id of token t: the warp looks back, 32 at a time.
__device__ bool seen_before(const std::int32_t* ids, std::int64_t t, int id, int lane) {
  for (std::int64_t end = t; end > 0; end -= 32) {
    const std::int64_t s = end - 1 - lane;
    if (__any_sync(~0u, s >= 0 && ids[s] == id)) return true;
  }
  return false;
}

// A warp for each token and 32 N columns. The first token of an id adds up the gradients of all with that id, in order: no two
// warps write one element, and the sum is the CPU's.
template <class T, int N>
__global__ void embedding_backward_kernel(std::int64_t tokens, std::int64_t cols, std::int64_t vocabulary, const std::int32_t* ids, const T* dy, float* dtable) {
  const std::int64_t t = std::int64_t(blockIdx.x) * rows_a_block + threadIdx.x / 32;
  const int lane = int(threadIdx.x) % 32;
  const std::int64_t col = (std::int64_t(blockIdx.y) * 32 + lane) * N;
  if (t >= tokens) return;
  const int id = ids[t];
  if (id < 0 || id >= vocabulary || seen_before(ids, t, id, lane)) return;
  const bool mine = col < cols;
  float* const row = dtable + id * cols + (mine ? col : 0);
  Pack<N> sum = mine ? load<N>(row, 0) : Pack<N>{};
  for (std::int64_t base = t; base < tokens; base += 32) {
    const unsigned matches = __ballot_sync(~0u, base + lane < tokens && ids[base + lane] == id);
    if (mine) sum = add_matches<T, N>(matches, base, cols, dy + col, sum);
  }
  if (mine) store(row, 0, sum);
}

// dpositions[p] += the rows of all tokens at place p of their sequence, in order.
template <class T>
__global__ void position_backward_kernel(std::int64_t tokens, std::int64_t cols, std::int64_t length, const T* dy, float* dpositions) {
  const std::int64_t col = std::int64_t(blockIdx.y) * blockDim.x + threadIdx.x;
  if (col >= cols) return;
  float sum = dpositions[blockIdx.x * cols + col];
  for (std::int64_t t = blockIdx.x; t < tokens; t += length) sum += load<1>(dy, t * cols + col).v[0];
  dpositions[blockIdx.x * cols + col] = sum;
}

}  // namespace

void embedding_forward(Queue queue, const ops::EmbeddingForward& a) {
  const std::int64_t tokens = a.tokens.count(), cols = a.table.shape[1], length = a.positions ? a.positions.shape[0] : 1;
  if (tokens == 0) return;
  dispatch<float, Bf16>(a.table.dtype, "embedding table", [&]<class Table>() {
    dispatch<float, Bf16>(a.out.dtype, "embedding", [&]<class T>() {
      with_pack<float>(cols, [&]<int N>() {
        embedding_forward_kernel<Table, T, N><<<unsigned(ceil_div(tokens, rows_a_block)), threads, 0, queue>>>(
            tokens, cols, a.table.shape[0], length, a.tokens.as<std::int32_t>(), a.table.as<Table>(), a.positions.f32(), a.out.as<T>());
      });
    });
  });
  launched("embedding_forward");
}

void embedding_backward(Queue queue, const ops::EmbeddingBackward& a) {
  const std::int64_t tokens = a.tokens.count(), cols = a.dtable.shape[1];
  if (tokens == 0 || cols == 0) return;
  dispatch<float, Bf16>(a.dy.dtype, "embedding", [&]<class T>() {
    with_pack<T>(cols, [&]<int N>() {
      const dim3 grid(unsigned(ceil_div(tokens, rows_a_block)), unsigned(ceil_div(cols, 32 * N)));
      embedding_backward_kernel<T, N><<<grid, threads, 0, queue>>>(tokens, cols, a.dtable.shape[0], a.tokens.as<std::int32_t>(), a.dy.as<T>(), a.dtable.f32());
    });
    if (!a.dpositions) return;
    const std::int64_t length = a.dpositions.shape[0];
    const dim3 grid(unsigned(length), unsigned(ceil_div(cols, 128)));
    position_backward_kernel<T><<<grid, 128, 0, queue>>>(tokens, cols, length, a.dy.as<T>(), a.dpositions.f32());
  });
  launched("embedding_backward");
}

}  // namespace octet::cuda
