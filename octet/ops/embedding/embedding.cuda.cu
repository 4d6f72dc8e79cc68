#include <cuda_pipeline.h>

#include "octet/ops/embedding/embedding.kernels.hpp"
#include "octet/tensor/cuda/check.cuh"
#include "octet/tensor/cuda/lanes.cuh"
#include "octet/tensor/cuda/queue.hpp"

namespace octet::cuda {
namespace {

constexpr int threads = 256, rows_a_block = threads / 32;

// Where tokens are in their sequences, and in their documents.
struct Positions {
  std::int64_t length = 1;  // rows of a sequence here
  SequencePart part;
  const std::int32_t* starts = nullptr;

  template <class Args>
  Positions(const Args& a, const Tensor& positions)
      : length(ops::rows_here(a.part, positions ? positions.shape[0] : 1)),
        part(a.part),
        starts(a.document_starts.template as<std::int32_t>()) {}
  __device__ std::int64_t of(std::int64_t t) const { return part.place(t % length, length) - (starts != nullptr ? starts[t] : 0); }
};

// A warp for each token.
template <class Table, class T, int N>
__global__ void embedding_forward_kernel(std::int64_t tokens, std::int64_t cols, std::int64_t rows, ops::TableRows place,
                                         Positions position_in, const std::int32_t* ids, const Table* table, const float* descale,
                                         const float* positions, const std::int32_t* places, T* out) {
  const std::int64_t t = std::int64_t(blockIdx.x) * rows_a_block + threadIdx.x / 32;
  if (t >= tokens) return;
  const RowLanes<32, N> lanes;
  const std::int64_t id = ids[t] - place.first;
  const bool here = id >= 0 && id < rows, elsewhere = !here && ids[t] >= 0 && ids[t] < place.all;
  const std::int64_t position = places != nullptr ? places[t] : position_in.of(t);
  const float factor = descale != nullptr ? *descale : 1.0f;
  lanes.each(cols, [&](std::int64_t at) {
    Pack<N> v = here ? lanes.load(table + id * cols, at) * factor : Pack<N>::all(elsewhere ? 0.0f : __int_as_float(0x7FC00000));
    if (positions != nullptr && !elsewhere) v = v + lanes.load(positions + position * cols, at);
    lanes.store(out + t * cols, at, v);
  });
}

// The tokens of each id, in order. Ids begin at `first`.
struct Lists {
  std::int64_t first_id;
  int* lists;     // how many have been placed
  int* longs;     // how many lists are long
  int* count;     // of an id's tokens
  int* first;     // where an id's list begins
  int* arrival;   // of a token among those of its id, in any order; -1 outside the vocabulary
  int* unsorted;  // lists in the order of arrival
  int* sorted;    // lists in the order of tokens
  int* long_ids;

  Lists(int* at, std::int64_t first_id, std::int64_t vocabulary, std::int64_t tokens)
      : first_id(first_id),
        lists(at),
        longs(at + 1),
        count(at + 2),
        first(count + vocabulary),
        arrival(first + vocabulary),
        unsorted(arrival + tokens),
        sorted(unsorted + tokens),
        long_ids(sorted + tokens) {}
};
constexpr int long_list = 32;

__global__ void count_tokens_kernel(std::int64_t tokens, std::int64_t vocabulary, const std::int32_t* ids, const Lists to) {
  const std::int64_t t = std::int64_t(blockIdx.x) * threads + threadIdx.x;
  if (t >= tokens) return;
  const std::int64_t id = ids[t] - to.first_id;
  to.arrival[t] = id >= 0 && id < vocabulary ? atomicAdd(to.count + id, 1) : -1;
}
// The first token of an id begins a list; a warp allocates space for all of its lists at once.
__global__ void begin_lists_kernel(std::int64_t tokens, const std::int32_t* ids, const Lists to) {
  const std::int64_t t = std::int64_t(blockIdx.x) * threads + threadIdx.x;
  const bool begins = t < tokens && to.arrival[t] == 0;
  const int id = begins ? int(ids[t] - to.first_id) : 0, n = begins ? to.count[id] : 0, lane = int(threadIdx.x) % 32;
  int end = n;  // of this lane's list among those of the warp
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const int before = __shfl_up_sync(~0u, end, step);
    if (lane >= step) end += before;
  }
  int first = lane == 31 ? atomicAdd(to.lists, end) : 0;
  first = __shfl_sync(~0u, first, 31) + end - n;
  if (begins) to.first[id] = first;
  if (n > long_list) to.long_ids[atomicAdd(to.longs, 1)] = id;
}
__global__ void place_tokens_kernel(std::int64_t tokens, const std::int32_t* ids, const Lists to) {
  const std::int64_t t = std::int64_t(blockIdx.x) * threads + threadIdx.x;
  if (t < tokens && to.arrival[t] >= 0) to.unsorted[to.first[ids[t] - to.first_id] + to.arrival[t]] = int(t);
}
// A token's place in its list is the number of earlier tokens there.
__global__ void sort_lists_kernel(std::int64_t tokens, const std::int32_t* ids, const Lists to) {
  const std::int64_t t = std::int64_t(blockIdx.x) * threads + threadIdx.x;
  if (t >= tokens || to.arrival[t] < 0) return;
  const int id = int(ids[t] - to.first_id), n = to.count[id], *const list = to.unsorted + to.first[id];
  int place = 0;
#pragma unroll 8
  for (int i = 0; i < n; ++i) place += list[i] < t;
  to.sorted[to.first[id] + place] = int(t);
}

// A warp for each token and 32 N columns: the first token of an id adds the gradients of its list, unless that is longer than `most`.
template <class T, int N>
__global__ void short_lists_kernel(std::int64_t tokens, std::int64_t cols, int most, const std::int32_t* ids, const Lists of, const T* dy,
                                   float* dtable) {
  constexpr int together = 4;
  const std::int64_t t = std::int64_t(blockIdx.x) * rows_a_block + threadIdx.x / 32;
  const std::int64_t col = (std::int64_t(blockIdx.y) * 32 + threadIdx.x % 32) * N;
  if (t >= tokens || col >= cols || of.arrival[t] != 0) return;
  const int id = int(ids[t] - of.first_id), n = of.count[id], *const list = of.sorted + of.first[id];
  if (n > most) return;
  float* const row = dtable + id * cols + col;
  Pack<N> sum = load<N>(row, 0);
  for (int i = 0; i < n; i += together) {
    Pack<N> rows[together];
#pragma unroll
    for (int k = 0; k < together; ++k)
      if (i + k < n) rows[k] = load<N>(dy + list[i + k] * cols + col, 0);
#pragma unroll
    for (int k = 0; k < together; ++k)
      if (i + k < n) sum = sum + rows[k];
  }
  store(row, 0, sum);
}

// A warp for each long list and 64 columns. Rows are under way to shared memory long before they are added.
template <class T>
__global__ void __launch_bounds__(32) long_lists_kernel(std::int64_t cols, const Lists of, const T* dy, float* dtable) {
  constexpr int N = 2, stage = 32, stages = 4, ahead = stage * (stages - 1);
  __shared__ __align__(8) T ring[stages][stage][32][N];
  const int lane = int(threadIdx.x);
  const std::int64_t col = (std::int64_t(blockIdx.y) * 32 + lane) * N;
  if (int(blockIdx.x) >= *of.longs) return;
  const bool mine = col < cols;
  const int id = of.long_ids[blockIdx.x], n = of.count[id], *const list = of.sorted + of.first[id];
  float* const row = dtable + id * cols + (mine ? col : 0);
  const T* const from = dy + (mine ? col : 0);
  int next = list[lane];  // a long list has as many
  const auto fetch = [&](int begin) {
    const int token = next;
    next = list[min(begin + stage + lane, n - 1)];
#pragma unroll
    for (int k = 0; k < stage; ++k) {
      const int t = __shfl_sync(~0u, token, k);
      if (begin + k < n) __pipeline_memcpy_async(ring[begin / stage % stages][k][lane], from + t * cols, N * sizeof(T));
    }
    __pipeline_commit();
  };
  Pack<N> sum = load<N>(row, 0);
  for (int begin = 0; begin < ahead; begin += stage) fetch(begin);
  for (int begin = 0; begin < n; begin += stage) {
    fetch(begin + ahead);
    __pipeline_wait_prior(stages - 1);
    Pack<N> rows[stage];
#pragma unroll
    for (int k = 0; k < stage; ++k) rows[k] = load<N>(ring[begin / stage % stages][k][lane], 0);
#pragma unroll
    for (int k = 0; k < stage; ++k)
      if (begin + k < n) sum = sum + rows[k];
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

// places[t] = the position of token t in its document; -1 of one whose row is not here.
__global__ void places_kernel(std::int64_t tokens, Positions positions, const std::int32_t* ids, std::int64_t first_id, std::int64_t rows,
                              std::int32_t* places) {
  const std::int64_t t = std::int64_t(blockIdx.x) * threads + threadIdx.x;
  if (t >= tokens) return;
  const std::int64_t id = ids[t] - first_id;
  places[t] = id >= 0 && id < rows ? int(positions.of(t)) : -1;
}

// table[ids[t], c] += dy[t, c], in the order of t. words: place for ops::embedding_list_words().
template <class T>
void add_by_id(Queue queue, const std::int32_t* ids, std::int64_t first_id, std::int64_t tokens, std::int64_t vocabulary, std::int64_t cols,
               int* words, const T* dy, float* table) {
  const Lists of(words, first_id, vocabulary, tokens);
  const unsigned blocks = unsigned(ceil_div(tokens, threads));
  clear(queue, of.lists, std::size_t(2 + vocabulary) * sizeof(int));
  count_tokens_kernel<<<blocks, threads, 0, queue>>>(tokens, vocabulary, ids, of);
  begin_lists_kernel<<<blocks, threads, 0, queue>>>(tokens, ids, of);
  place_tokens_kernel<<<blocks, threads, 0, queue>>>(tokens, ids, of);
  sort_lists_kernel<<<blocks, threads, 0, queue>>>(tokens, ids, of);
  const bool pairs = cols % 2 == 0;
  with_pack<T>(cols, [&]<int N>() {
    const dim3 grid(unsigned(ceil_div(tokens, rows_a_block)), unsigned(ceil_div(cols, 32 * N)));
    short_lists_kernel<T, N><<<grid, threads, 0, queue>>>(tokens, cols, pairs ? long_list : int(tokens), ids, of, dy, table);
  });
  if (pairs && tokens > long_list)
    long_lists_kernel<T><<<dim3(unsigned(tokens / long_list), unsigned(ceil_div(cols, 64))), 32, 0, queue>>>(cols, of, dy, table);
}

}  // namespace

void embedding_forward(Queue queue, const ops::EmbeddingForward& a) {
  const std::int64_t tokens = a.tokens.count(), cols = a.table.shape[1];
  if (tokens == 0) return;
  dispatch<float, Bf16, Fp16, E4M3>(a.table.dtype, "embedding table", [&]<class Table>() {
    dispatch<float, Bf16, Fp16>(a.out.dtype, "embedding", [&]<class T>() {
      with_pack<std::conditional_t<sizeof(Table) == 2, Table, T>>(cols, [&]<int N>() {
        embedding_forward_kernel<Table, T, N><<<unsigned(ceil_div(tokens, rows_a_block)), threads, 0, queue>>>(
            tokens, cols, a.table.shape[0], a.rows, Positions(a, a.positions), a.tokens.as<std::int32_t>(), a.table.as<Table>(),
            a.descale.f32(), a.positions.f32(), a.places.as<std::int32_t>(), a.out.as<T>());
      });
    });
  });
  launched("embedding_forward");
}

void embedding_backward(Queue queue, const ops::EmbeddingBackward& a, const Tensor& lists) {
  const std::int64_t tokens = a.tokens.count(), cols = a.dtable.shape[1], vocabulary = a.dtable.shape[0];
  if (tokens == 0 || cols == 0) return;
  dispatch<float, Bf16, Fp16>(a.dy.dtype, "embedding", [&]<class T>() {
    const T* const dy = a.dy.as<T>();
    int* const words = lists.as<int>();
    add_by_id(queue, a.tokens.as<std::int32_t>(), a.rows.first, tokens, vocabulary, cols, words, dy, a.dtable.f32());
    if (!a.dpositions) return;
    const std::int64_t length = a.dpositions.shape[0];
    if (ops::lists_positions(a)) {
      int* const places = words + ops::embedding_list_words(vocabulary, tokens);
      places_kernel<<<unsigned(ceil_div(tokens, threads)), threads, 0, queue>>>(
          tokens, Positions(a, a.dpositions), a.tokens.as<std::int32_t>(), a.rows.first, vocabulary, places);
      add_by_id(queue, places, 0, tokens, length, cols, places + tokens, dy, a.dpositions.f32());
    } else {
      const dim3 grid(unsigned(length), unsigned(ceil_div(cols, 128)));
      position_backward_kernel<T><<<grid, 128, 0, queue>>>(tokens, cols, length, dy, a.dpositions.f32());
    }
  });
  launched("embedding_backward");
}

}  // namespace octet::cuda
