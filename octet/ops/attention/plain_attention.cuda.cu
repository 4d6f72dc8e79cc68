#include "octet/numerics/math.hpp"
#include "octet/ops/attention/attention.kernels.hpp"
#include "octet/tensor/cuda/check.cuh"
#include "octet/tensor/cuda/lanes.cuh"

// Attention for problems that cuDNN does not support, in FP32. A block of threads owns a tile of rows (queries, or keys for dk and dv) of
// one head of one sequence, keeps them in shared memory, and meets the other side tile by tile; eight threads share a row. All sums have a
// fixed order.

namespace octet::cuda {
namespace {

constexpr int lanes = 8;  // threads of a row: neighbours in a warp

__device__ float row_sum(float x) {
#pragma unroll
  for (int step = lanes / 2; step > 0; step /= 2) x += __shfl_xor_sync(~0u, x, step);
  return x;
}
__device__ float row_max(float x) {
#pragma unroll
  for (int step = lanes / 2; step > 0; step /= 2) x = octet::larger(__shfl_xor_sync(~0u, x, step), x);
  return x;
}

// The problem as the kernels see it. Queries of a sequence are one segment of neighbours or two; keys and values are those of whole
// sequences, in matrices of `key_columns` columns.
struct Sizes {
  std::int64_t tokens, sequence, columns, whole, key_columns;  // T, S, (H + Hkv) d + Hkv dv, W
  int heads, kv_heads, d, dv, segments;
  std::int64_t segment;  // queries of a segment
  SequencePart part;
  float scale;
  const std::int32_t* starts;  // [T], of each token's document in its sequence; null: 0

  // The first key that query `row` of the sequence which begins at `token` reads.
  __device__ std::int64_t first_key(std::int64_t token, std::int64_t row) const { return starts != nullptr ? starts[token + row] : 0; }
  // Floats between rows of queries or keys, and of values, in shared memory: odd, so that no two rows share banks.
  __device__ int width() const { return d | 1; }
  __device__ int value_width() const { return dv | 1; }
  __device__ std::int64_t query_column(int h) const { return std::int64_t(h) * d; }
  __device__ std::int64_t out_column(int h) const { return std::int64_t(h) * dv; }
  __device__ std::int64_t out_columns() const { return std::int64_t(heads) * dv; }
};

// `tile` queries of a segment, whose rows in the sequence begin at `row`, and whose places at `place`.
struct QueryTile {
  std::int64_t row, place;
  int count;  // of them that there are, up to `tile`

  // The first key that query r reads; of those that are not there, that of the last one.
  __device__ std::int64_t first_key(const Sizes& s, std::int64_t token, int r) const {
    return s.first_key(token, row + (r < count ? r : count - 1));
  }
};
template <int tile>
__device__ QueryTile query_tile(const Sizes& s, std::int64_t i) {
  const std::int64_t tiles = (s.segment + tile - 1) / tile, segment = i / tiles, first = i % tiles * tile, left = s.segment - first,
                     row = segment * s.segment + first;
  return {row, s.part.place(row, s.sequence), int(left < tile ? left : tile)};
}

// Keys, values or their gradients: the first element of each, of the first token.
template <class T>
struct Keys {
  T *keys, *values;
};
template <class T>
Keys<T> keys_of(const ops::QkvShape& h, const Tensor& fused, const Tensor& apart) {
  T* const first = apart ? apart.as<T>() : fused.as<T>() + h.key_column(0);
  return {first, first + h.kv_heads * h.head_dim};
}

template <class Args>
Sizes sizes_of(const Args& a) {
  const ops::QkvShape& h = a.heads;
  const int segments = h.part ? 2 : 1;
  return {.tokens = a.qkv.shape[0],
          .sequence = h.sequence,
          .columns = h.columns(),
          .whole = h.whole(),
          .key_columns = h.part ? a.keys.shape[1] : h.columns(),
          .heads = int(h.heads),
          .kv_heads = int(h.kv_heads),
          .d = int(h.head_dim),
          .dv = int(h.value_dim()),
          .segments = segments,
          .segment = h.sequence / segments,
          .part = h.part,
          .scale = h.scale(),
          .starts = a.document_starts.template as<std::int32_t>()};
}

// `tile` rows of n columns of a head from row `first` on, times `factor`; zeros from row `end` on. x: the head's first element in the
// sequence.
template <int tile, class T>
__device__ void load_rows(int n, const T* x, std::int64_t stride, std::int64_t first, std::int64_t end, float factor, float* to) {
  for (int i = threadIdx.x; i < tile * n; i += tile * lanes) {
    const int r = i / n, c = i % n;
    to[r * (n | 1) + c] = first + r < end ? cuda::load<1>(x, (first + r) * stride + c).v[0] * factor : 0.0f;
  }
}
template <int tile, class T>
__device__ void store_rows(int n, const float* from, T* x, std::int64_t stride, std::int64_t first, std::int64_t end, float factor) {
  for (int i = threadIdx.x; i < tile * n; i += tile * lanes) {
    const int r = i / n, c = i % n;
    if (first + r < end) cuda::store(x, (first + r) * stride + c, Pack<1>::all(from[r * (n | 1) + c] * factor));
  }
}
__device__ float dot(int n, const float* x, const float* y) {
  float sum = 0;
  for (int c = 0; c < n; ++c) sum = fmaf(x[c], y[c], sum);
  return sum;
}
// to[c] = to[c] * keep + sum_j weight[j] x[j][c], for this thread's columns of its row.
template <int tile>
__device__ void add_weighted(int n, const float* weight, const float* x, float keep, float* to) {
  for (int c = threadIdx.x % lanes; c < n; c += lanes) {
    float sum = to[c] * keep;
    for (int j = 0; j < tile; ++j) sum = fmaf(weight[j], x[j * (n | 1) + c], sum);
    to[c] = sum;
  }
}
template <int tile>
__device__ void clear_rows(int n, float* x) {
  for (int i = threadIdx.x; i < tile * (n | 1); i += tile * lanes) x[i] = 0;
}

// grid: tiles of queries, H, B.
template <int tile, class T>
__global__ void forward_kernel(Sizes s, const T* qkv, Keys<const T> whole, T* o, float* lse) {
  extern __shared__ float shared[];
  float *const q = shared, *const k = q + tile * s.width(), *const v = k + tile * s.width(), *const out = v + tile * s.value_width();
  float* const weights = out + tile * s.value_width();  // [tile][tile + 1]
  const int row = threadIdx.x / lanes, lane = threadIdx.x % lanes, head = blockIdx.y, kv = head / (s.heads / s.kv_heads);
  const QueryTile queries = query_tile<tile>(s, blockIdx.x);
  const std::int64_t token = blockIdx.z * s.sequence, end = queries.row + queries.count, place = queries.place + row,
                     of_keys = blockIdx.z * s.whole * s.key_columns + kv * s.d,
                     of_values = blockIdx.z * s.whole * s.key_columns + kv * s.dv;
  load_rows<tile>(s.d, qkv + token * s.columns + s.query_column(head), s.columns, queries.row, end, s.scale, q);
  clear_rows<tile>(s.dv, out);
  float most = -INFINITY, sum = 0;
  float* const weight = weights + row * (tile + 1);
  const std::int64_t begin = queries.first_key(s, token, row);
  for (std::int64_t keys = queries.first_key(s, token, 0) / tile * tile; keys < queries.place + queries.count; keys += tile) {
    __syncthreads();
    load_rows<tile>(s.d, whole.keys + of_keys, s.key_columns, keys, s.whole, 1.0f, k);
    load_rows<tile>(s.dv, whole.values + of_values, s.key_columns, keys, s.whole, 1.0f, v);
    __syncthreads();
    float tile_most = -INFINITY, tile_sum = 0;
    for (int j = lane; j < tile; j += lanes) {
      weight[j] = keys + j >= begin && keys + j <= place ? dot(s.d, q + row * s.width(), k + j * s.width()) : -INFINITY;
      tile_most = octet::larger(weight[j], tile_most);
    }
    const float next = octet::larger(row_max(tile_most), most), keep = most == next ? 1.0f : math::exp(most - next);
    for (int j = lane; j < tile; j += lanes) {
      weight[j] = keys + j >= begin && keys + j <= place ? math::exp(weight[j] - next) : 0.0f;
      tile_sum += weight[j];
    }
    sum = sum * keep + row_sum(tile_sum);
    most = next;
    __syncwarp();
    add_weighted<tile>(s.dv, weight, v, keep, out + row * s.value_width());
  }
  if (row < queries.count && lane == 0) lse[head * s.tokens + token + queries.row + row] = most + math::log(sum);
  for (int c = lane; c < s.dv; c += lanes) out[row * s.value_width() + c] *= 1.0f / sum;
  __syncthreads();
  const std::int64_t stride = s.out_columns();
  store_rows<tile>(s.dv, out, o + token * stride + s.out_column(head), stride, queries.row, end, 1.0f);
}

// delta[h, t] = sum_c do[t, h, c] o[t, h, c], a warp for each.
template <class T>
__global__ void delta_kernel(Sizes s, const T* d_o, const T* o, float* delta) {
  const std::int64_t at = (std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x) / 32;
  if (at >= s.tokens * s.heads) return;
  float sum = 0;
  for (int c = threadIdx.x % 32; c < s.dv; c += 32)
    sum = fmaf(cuda::load<1>(d_o, at * s.dv + c).v[0], cuda::load<1>(o, at * s.dv + c).v[0], sum);
  sum = warp_sum(sum);
  if (threadIdx.x % 32 == 0) delta[at % s.heads * s.tokens + at / s.heads] = sum;
}

// p and ds of one query and one key.
struct Gradient {
  float p, ds;
};
__device__ Gradient gradient(const Sizes& s, const float* q, const float* k, const float* d_o, const float* v, float lse, float delta) {
  const float p = math::exp(dot(s.d, q, k) - lse);
  return {p, p * (dot(s.dv, d_o, v) - delta)};
}

// dq. grid: tiles of queries, H, B.
template <int tile, class T>
__global__ void query_kernel(Sizes s, const T* qkv, Keys<const T> whole, const T* d_o, const float* lse, const float* delta, T* dqkv) {
  extern __shared__ float shared[];
  float *const q = shared, *const k = q + tile * s.width(), *const v = k + tile * s.width(), *const g = v + tile * s.value_width();
  float *const dq = g + tile * s.value_width(), *const weights = dq + tile * s.width();
  const int row = threadIdx.x / lanes, lane = threadIdx.x % lanes, head = blockIdx.y, kv = head / (s.heads / s.kv_heads);
  const QueryTile queries = query_tile<tile>(s, blockIdx.x);
  const std::int64_t token = blockIdx.z * s.sequence, end = queries.row + queries.count, place = queries.place + row,
                     stride = s.out_columns(), of_keys = blockIdx.z * s.whole * s.key_columns + kv * s.d,
                     of_values = blockIdx.z * s.whole * s.key_columns + kv * s.dv;
  load_rows<tile>(s.d, qkv + token * s.columns + s.query_column(head), s.columns, queries.row, end, s.scale, q);
  load_rows<tile>(s.dv, d_o + token * stride + s.out_column(head), stride, queries.row, end, 1.0f, g);
  clear_rows<tile>(s.d, dq);
  const std::int64_t at = head * s.tokens + token + queries.row + (row < queries.count ? row : 0);
  const float row_lse = lse[at], row_delta = delta[at];
  float* const weight = weights + row * (tile + 1);
  const std::int64_t begin = queries.first_key(s, token, row);
  for (std::int64_t keys = queries.first_key(s, token, 0) / tile * tile; keys < queries.place + queries.count; keys += tile) {
    __syncthreads();
    load_rows<tile>(s.d, whole.keys + of_keys, s.key_columns, keys, s.whole, 1.0f, k);
    load_rows<tile>(s.dv, whole.values + of_values, s.key_columns, keys, s.whole, 1.0f, v);
    __syncthreads();
    for (int j = lane; j < tile; j += lanes) {
      const int to = j * s.width(), from = row * s.width(), value = j * s.value_width(), out = row * s.value_width();
      const bool read = keys + j >= begin && keys + j <= place && row < queries.count;
      weight[j] = read ? gradient(s, q + from, k + to, g + out, v + value, row_lse, row_delta).ds : 0.0f;
    }
    __syncwarp();
    add_weighted<tile>(s.d, weight, k, 1.0f, dq + row * s.width());
  }
  __syncthreads();
  store_rows<tile>(s.d, dq, dqkv + token * s.columns + s.query_column(head), s.columns, queries.row, end, s.scale);
}

// dk and dv, the query heads that share them one after another. grid: tiles of keys, Hkv, B.
template <int tile, class T>
__global__ void key_kernel(Sizes s, const T* qkv, Keys<const T> whole, const T* d_o, const float* lse, const float* delta, Keys<T> out) {
  extern __shared__ float shared[];
  float *const q = shared, *const k = q + tile * s.width(), *const v = k + tile * s.width(), *const g = v + tile * s.value_width();
  float *const dk = g + tile * s.value_width(), *const dv = dk + tile * s.width(), *const weights = dv + tile * s.value_width();
  const int row = threadIdx.x / lanes, lane = threadIdx.x % lanes, kv = blockIdx.y, group = s.heads / s.kv_heads;
  const std::int64_t token = blockIdx.z * s.sequence, first = std::int64_t(blockIdx.x) * tile, key = first + row, stride = s.out_columns(),
                     of_keys = blockIdx.z * s.whole * s.key_columns + kv * s.d,
                     of_values = blockIdx.z * s.whole * s.key_columns + kv * s.dv, tiles = (s.segment + tile - 1) / tile * s.segments;
  load_rows<tile>(s.d, whole.keys + of_keys, s.key_columns, first, s.whole, 1.0f, k);
  load_rows<tile>(s.dv, whole.values + of_values, s.key_columns, first, s.whole, 1.0f, v);
  clear_rows<tile>(s.d, dk), clear_rows<tile>(s.dv, dv);
  float *const p = weights + row * (tile + 1), *const ds = p + tile * (tile + 1);
  for (int head = kv * group; head < (kv + 1) * group; ++head)
    for (std::int64_t t = 0; t < tiles; ++t) {
      const QueryTile queries = query_tile<tile>(s, t);
      const std::int64_t end = queries.row + queries.count;
      if (queries.place + queries.count <= first) continue;       // before these keys
      if (queries.first_key(s, token, 0) >= first + tile) break;  // these and all later ones are in later documents
      __syncthreads();
      load_rows<tile>(s.d, qkv + token * s.columns + s.query_column(head), s.columns, queries.row, end, s.scale, q);
      load_rows<tile>(s.dv, d_o + token * stride + s.out_column(head), stride, queries.row, end, 1.0f, g);
      __syncthreads();
      for (int i = lane; i < tile; i += lanes) {
        const std::int64_t at = head * s.tokens + token + queries.row + i;
        Gradient one{};
        if (i < queries.count && key <= queries.place + i && key >= queries.first_key(s, token, i))
          one = gradient(s, q + i * s.width(), k + row * s.width(), g + i * s.value_width(), v + row * s.value_width(), lse[at], delta[at]);
        p[i] = one.p, ds[i] = one.ds;
      }
      __syncwarp();
      add_weighted<tile>(s.d, ds, q, 1.0f, dk + row * s.width());
      add_weighted<tile>(s.dv, p, g, 1.0f, dv + row * s.value_width());
    }
  __syncthreads();
  store_rows<tile>(s.d, dk, out.keys + of_keys, s.key_columns, first, s.whole, 1.0f);
  store_rows<tile>(s.dv, dv, out.values + of_values, s.key_columns, first, s.whole, 1.0f);
}

// Shared memory of a kernel with so many tiles of queries or keys, as many of values, `more` of queries, and so many of weights.
int shared_bytes(const ops::QkvShape& h, int tile, int of_both, int more, int of_weights) {
  const int keys = int(h.head_dim) | 1, values = int(h.value_dim()) | 1;
  return int(sizeof(float)) * tile * (of_both * (keys + values) + more * keys + of_weights * (tile + 1));
}

// f<tile>() with the largest tile that shared memory holds.
template <class F>
void with_tile(const ops::QkvShape& h, const F& f) {
  constexpr std::int64_t most = 512;
  const std::int64_t widest = h.head_dim > h.value_dim() ? h.head_dim : h.value_dim();
  if (widest > most) throw DeviceError(format("attention on a GPU takes heads of up to {}, got {}", most, widest));
  if (widest <= most / 2) f.template operator()<32>();
  else f.template operator()<16>();
}

dim3 grid_of(const Sizes& s, std::int64_t tiles, int heads) {
  constexpr std::int64_t most = 65535;  // blocks along a grid's third dimension
  const std::int64_t sequences = s.tokens / s.sequence;
  if (sequences > most) throw DeviceError(format("attention on a GPU takes up to {} sequences at once, got {}", most, sequences));
  return dim3(unsigned(tiles), unsigned(heads), unsigned(sequences));
}
dim3 grid_of_queries(const Sizes& s, int tile) { return grid_of(s, ceil_div(s.segment, tile) * s.segments, s.heads); }
dim3 grid_of_keys(const Sizes& s, int tile) { return grid_of(s, ceil_div(s.whole, tile), s.kv_heads); }

}  // namespace

void plain_attention_forward(Queue queue, const ops::AttentionForward& a) {
  const Sizes s = sizes_of(a);
  dispatch<float, Bf16, Fp16>(a.qkv.dtype, "attention", [&]<class T>() {
    const Keys<const T> keys = keys_of<const T>(a.heads, a.qkv, a.keys);
    with_tile(a.heads, [&]<int tile>() {
      const int bytes = shared_bytes(a.heads, tile, 2, 0, 1);
      allow_shared(forward_kernel<tile, T>, bytes);
      forward_kernel<tile, T><<<grid_of_queries(s, tile), tile * lanes, bytes, queue>>>(s, a.qkv.as<T>(), keys, a.o.as<T>(), a.lse.f32());
    });
  });
  launched("attention forward");
}

void plain_attention_backward(Queue queue, const ops::AttentionBackward& a, float* delta) {
  const Sizes s = sizes_of(a);
  dispatch<float, Bf16, Fp16>(a.qkv.dtype, "attention", [&]<class T>() {
    const T *const qkv = a.qkv.as<T>(), *const d_o = a.d_o.as<T>();
    const Keys<const T> keys = keys_of<const T>(a.heads, a.qkv, a.keys);
    constexpr int threads = 256;
    delta_kernel<T><<<unsigned(ceil_div(s.tokens * s.heads, threads / 32)), threads, 0, queue>>>(s, d_o, a.o.as<T>(), delta);
    with_tile(a.heads, [&]<int tile>() {
      const int query_bytes = shared_bytes(a.heads, tile, 2, 1, 1), key_bytes = shared_bytes(a.heads, tile, 3, 0, 2);
      allow_shared(query_kernel<tile, T>, query_bytes), allow_shared(key_kernel<tile, T>, key_bytes);
      query_kernel<tile, T>
          <<<grid_of_queries(s, tile), tile * lanes, query_bytes, queue>>>(s, qkv, keys, d_o, a.lse.f32(), delta, a.dqkv.as<T>());
      key_kernel<tile, T><<<grid_of_keys(s, tile), tile * lanes, key_bytes, queue>>>(s, qkv, keys, d_o, a.lse.f32(), delta,
                                                                                     keys_of<T>(a.heads, a.dqkv, a.dkeys));
    });
  });
  launched("attention backward");
}

}  // namespace octet::cuda
