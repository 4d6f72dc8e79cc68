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

// The problem as the kernels see it.
struct Sizes {
  std::int64_t tokens, sequence, columns;  // T, S, (H + 2 Hkv) d
  int heads, kv_heads, d;
  float scale;
  const std::int32_t* starts;  // [T], of each token's document in its sequence; null: 0

  // The first key that a query of the sequence which begins at `token` reads.
  __device__ std::int64_t first_key(std::int64_t token, std::int64_t query) const {
    return starts != nullptr ? starts[token + (query < sequence ? query : sequence - 1)] : 0;
  }
  __device__ int width() const { return d | 1; }  // floats between rows in shared memory: odd, so that no two rows share banks
  __device__ std::int64_t query_column(int h) const { return std::int64_t(h) * d; }
  __device__ std::int64_t key_column(int h) const { return std::int64_t(heads + h) * d; }
  __device__ std::int64_t value_column(int h) const { return std::int64_t(heads + kv_heads + h) * d; }
};

template <class Args>
Sizes sizes_of(const Args& a) {
  const ops::QkvShape& h = a.heads;
  return {a.qkv.shape[0],
          h.sequence,
          h.columns(),
          int(h.heads),
          int(h.kv_heads),
          int(h.head_dim),
          1.0f / std::sqrt(float(h.head_dim)),
          a.document_starts.template as<std::int32_t>()};
}

// `tile` rows of a head from row `first` of a sequence, times `factor`; zeros past the sequence's end. x: the head's first element there.
template <int tile, class T>
__device__ void load_rows(const Sizes& s, const T* x, std::int64_t stride, std::int64_t first, float factor, float* to) {
  for (int i = threadIdx.x; i < tile * s.d; i += tile * lanes) {
    const int r = i / s.d, c = i % s.d;
    to[r * s.width() + c] = first + r < s.sequence ? cuda::load<1>(x, (first + r) * stride + c).v[0] * factor : 0.0f;
  }
}
template <int tile, class T>
__device__ void store_rows(const Sizes& s, const float* from, T* x, std::int64_t stride, std::int64_t first, float factor) {
  for (int i = threadIdx.x; i < tile * s.d; i += tile * lanes) {
    const int r = i / s.d, c = i % s.d;
    if (first + r < s.sequence) cuda::store(x, (first + r) * stride + c, Pack<1>::all(from[r * s.width() + c] * factor));
  }
}
__device__ float dot(const Sizes& s, const float* x, const float* y) {
  float sum = 0;
  for (int c = 0; c < s.d; ++c) sum = fmaf(x[c], y[c], sum);
  return sum;
}
// to[c] = to[c] * keep + sum_j weight[j] x[j][c], for this thread's columns of its row.
template <int tile>
__device__ void add_weighted(const Sizes& s, const float* weight, const float* x, float keep, float* to) {
  for (int c = threadIdx.x % lanes; c < s.d; c += lanes) {
    float sum = to[c] * keep;
    for (int j = 0; j < tile; ++j) sum = fmaf(weight[j], x[j * s.width() + c], sum);
    to[c] = sum;
  }
}
template <int tile>
__device__ void clear_rows(const Sizes& s, float* x) {
  for (int i = threadIdx.x; i < tile * s.width(); i += tile * lanes) x[i] = 0;
}

// grid: tiles of queries, H, B.
template <int tile, class T>
__global__ void forward_kernel(Sizes s, const T* qkv, T* o, float* lse) {
  extern __shared__ float shared[];
  float *const q = shared, *const k = q + tile * s.width(), *const v = k + tile * s.width(), *const out = v + tile * s.width();
  float* const weights = out + tile * s.width();  // [tile][tile + 1]
  const int row = threadIdx.x / lanes, lane = threadIdx.x % lanes, head = blockIdx.y, kv = head / (s.heads / s.kv_heads);
  const std::int64_t token = blockIdx.z * s.sequence, first = std::int64_t(blockIdx.x) * tile, query = first + row;
  const T* const x = qkv + token * s.columns;
  load_rows<tile>(s, x + s.query_column(head), s.columns, first, s.scale, q);
  clear_rows<tile>(s, out);
  float most = -INFINITY, sum = 0;
  float* const weight = weights + row * (tile + 1);
  const std::int64_t begin = s.first_key(token, query);
  for (std::int64_t keys = s.first_key(token, first) / tile * tile; keys <= first; keys += tile) {
    __syncthreads();
    load_rows<tile>(s, x + s.key_column(kv), s.columns, keys, 1.0f, k);
    load_rows<tile>(s, x + s.value_column(kv), s.columns, keys, 1.0f, v);
    __syncthreads();
    float tile_most = -INFINITY, tile_sum = 0;
    for (int j = lane; j < tile; j += lanes) {
      weight[j] = keys + j >= begin && keys + j <= query ? dot(s, q + row * s.width(), k + j * s.width()) : -INFINITY;
      tile_most = octet::larger(weight[j], tile_most);
    }
    const float next = octet::larger(row_max(tile_most), most), keep = most == next ? 1.0f : math::exp(most - next);
    for (int j = lane; j < tile; j += lanes) {
      weight[j] = keys + j >= begin && keys + j <= query ? math::exp(weight[j] - next) : 0.0f;
      tile_sum += weight[j];
    }
    sum = sum * keep + row_sum(tile_sum);
    most = next;
    __syncwarp();
    add_weighted<tile>(s, weight, v, keep, out + row * s.width());
  }
  if (query < s.sequence && lane == 0) lse[head * s.tokens + token + query] = most + math::log(sum);
  for (int c = lane; c < s.d; c += lanes) out[row * s.width() + c] *= 1.0f / sum;
  __syncthreads();
  const std::int64_t stride = std::int64_t(s.heads) * s.d;
  store_rows<tile>(s, out, o + token * stride + s.query_column(head), stride, first, 1.0f);
}

// delta[h, t] = sum_c do[t, h, c] o[t, h, c], a warp for each.
template <class T>
__global__ void delta_kernel(Sizes s, const T* d_o, const T* o, float* delta) {
  const std::int64_t at = (std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x) / 32;
  if (at >= s.tokens * s.heads) return;
  float sum = 0;
  for (int c = threadIdx.x % 32; c < s.d; c += 32)
    sum = fmaf(cuda::load<1>(d_o, at * s.d + c).v[0], cuda::load<1>(o, at * s.d + c).v[0], sum);
  sum = warp_sum(sum);
  if (threadIdx.x % 32 == 0) delta[at % s.heads * s.tokens + at / s.heads] = sum;
}

// p and ds of one query and one key.
struct Gradient {
  float p, ds;
};
__device__ Gradient gradient(const Sizes& s, const float* q, const float* k, const float* d_o, const float* v, float lse, float delta) {
  const float p = math::exp(dot(s, q, k) - lse);
  return {p, p * (dot(s, d_o, v) - delta)};
}

// dq. grid: tiles of queries, H, B.
template <int tile, class T>
__global__ void query_kernel(Sizes s, const T* qkv, const T* d_o, const float* lse, const float* delta, T* dqkv) {
  extern __shared__ float shared[];
  float *const q = shared, *const k = q + tile * s.width(), *const v = k + tile * s.width(), *const g = v + tile * s.width();
  float *const dq = g + tile * s.width(), *const weights = dq + tile * s.width();
  const int row = threadIdx.x / lanes, lane = threadIdx.x % lanes, head = blockIdx.y, kv = head / (s.heads / s.kv_heads);
  const std::int64_t token = blockIdx.z * s.sequence, first = std::int64_t(blockIdx.x) * tile, query = first + row,
                     stride = std::int64_t(s.heads) * s.d;
  const T* const x = qkv + token * s.columns;
  load_rows<tile>(s, x + s.query_column(head), s.columns, first, s.scale, q);
  load_rows<tile>(s, d_o + token * stride + s.query_column(head), stride, first, 1.0f, g);
  clear_rows<tile>(s, dq);
  const std::int64_t at = head * s.tokens + token + (query < s.sequence ? query : 0);
  const float row_lse = lse[at], row_delta = delta[at];
  float* const weight = weights + row * (tile + 1);
  const std::int64_t begin = s.first_key(token, query);
  for (std::int64_t keys = s.first_key(token, first) / tile * tile; keys <= first; keys += tile) {
    __syncthreads();
    load_rows<tile>(s, x + s.key_column(kv), s.columns, keys, 1.0f, k);
    load_rows<tile>(s, x + s.value_column(kv), s.columns, keys, 1.0f, v);
    __syncthreads();
    for (int j = lane; j < tile; j += lanes) {
      const int to = j * s.width(), from = row * s.width();
      const bool read = keys + j >= begin && keys + j <= query && query < s.sequence;
      weight[j] = read ? gradient(s, q + from, k + to, g + from, v + to, row_lse, row_delta).ds : 0.0f;
    }
    __syncwarp();
    add_weighted<tile>(s, weight, k, 1.0f, dq + row * s.width());
  }
  __syncthreads();
  store_rows<tile>(s, dq, dqkv + token * s.columns + s.query_column(head), s.columns, first, s.scale);
}

// dk and dv, the query heads that share them one after another. grid: tiles of keys, Hkv, B.
template <int tile, class T>
__global__ void key_kernel(Sizes s, const T* qkv, const T* d_o, const float* lse, const float* delta, T* dqkv) {
  extern __shared__ float shared[];
  float *const q = shared, *const k = q + tile * s.width(), *const v = k + tile * s.width(), *const g = v + tile * s.width();
  float *const dk = g + tile * s.width(), *const dv = dk + tile * s.width(), *const weights = dv + tile * s.width();
  const int row = threadIdx.x / lanes, lane = threadIdx.x % lanes, kv = blockIdx.y, group = s.heads / s.kv_heads;
  const std::int64_t token = blockIdx.z * s.sequence, first = std::int64_t(blockIdx.x) * tile, key = first + row,
                     stride = std::int64_t(s.heads) * s.d;
  const T* const x = qkv + token * s.columns;
  load_rows<tile>(s, x + s.key_column(kv), s.columns, first, 1.0f, k);
  load_rows<tile>(s, x + s.value_column(kv), s.columns, first, 1.0f, v);
  clear_rows<tile>(s, dk), clear_rows<tile>(s, dv);
  float *const p = weights + row * (tile + 1), *const ds = p + tile * (tile + 1);
  for (int head = kv * group; head < (kv + 1) * group; ++head)
    for (std::int64_t queries = first; queries < s.sequence; queries += tile) {
      if (s.first_key(token, queries) >= first + tile) break;  // these and all later ones are in later documents
      __syncthreads();
      load_rows<tile>(s, x + s.query_column(head), s.columns, queries, s.scale, q);
      load_rows<tile>(s, d_o + token * stride + s.query_column(head), stride, queries, 1.0f, g);
      __syncthreads();
      for (int i = lane; i < tile; i += lanes) {
        const std::int64_t query = queries + i, at = head * s.tokens + token + query;
        Gradient one{};
        if (key <= query && query < s.sequence && key >= s.first_key(token, query))
          one = gradient(s, q + i * s.width(), k + row * s.width(), g + i * s.width(), v + row * s.width(), lse[at], delta[at]);
        p[i] = one.p, ds[i] = one.ds;
      }
      __syncwarp();
      add_weighted<tile>(s, ds, q, 1.0f, dk + row * s.width());
      add_weighted<tile>(s, p, g, 1.0f, dv + row * s.width());
    }
  __syncthreads();
  T* const out = dqkv + token * s.columns;
  store_rows<tile>(s, dk, out + s.key_column(kv), s.columns, first, 1.0f);
  store_rows<tile>(s, dv, out + s.value_column(kv), s.columns, first, 1.0f);
}

// Shared memory of a kernel with so many tiles of rows and of weights.
int shared_bytes(const ops::QkvShape& h, int tile, int of_rows, int of_weights) {
  return int(sizeof(float)) * (of_rows * tile * (int(h.head_dim) | 1) + of_weights * tile * (tile + 1));
}

// f<tile>() with the largest tile that shared memory holds.
template <class F>
void with_tile(const ops::QkvShape& h, const F& f) {
  constexpr std::int64_t most = 512;
  if (h.head_dim > most) throw DeviceError(format("attention on a GPU takes heads of up to {}, got {}", most, h.head_dim));
  if (h.head_dim <= most / 2) f.template operator()<32>();
  else f.template operator()<16>();
}

dim3 grid_of(const ops::QkvShape& h, std::int64_t tokens, std::int64_t heads, int tile) {
  constexpr std::int64_t most = 65535;  // blocks along a grid's third dimension
  const std::int64_t sequences = tokens / h.sequence;
  if (sequences > most) throw DeviceError(format("attention on a GPU takes up to {} sequences at once, got {}", most, sequences));
  return dim3(unsigned(ceil_div(h.sequence, tile)), unsigned(heads), unsigned(sequences));
}

}  // namespace

void plain_attention_forward(Queue queue, const ops::AttentionForward& a) {
  const std::int64_t tokens = a.qkv.shape[0];
  const Sizes s = sizes_of(a);
  dispatch<float, Bf16, Fp16>(a.qkv.dtype, "attention", [&]<class T>() {
    with_tile(a.heads, [&]<int tile>() {
      const int bytes = shared_bytes(a.heads, tile, 4, 1);
      allow_shared(forward_kernel<tile, T>, bytes);
      forward_kernel<tile, T>
          <<<grid_of(a.heads, tokens, s.heads, tile), tile * lanes, bytes, queue>>>(s, a.qkv.as<T>(), a.o.as<T>(), a.lse.f32());
    });
  });
  launched("attention forward");
}

void plain_attention_backward(Queue queue, const ops::AttentionBackward& a, float* delta) {
  const std::int64_t tokens = a.qkv.shape[0];
  const Sizes s = sizes_of(a);
  dispatch<float, Bf16, Fp16>(a.qkv.dtype, "attention", [&]<class T>() {
    const T *const qkv = a.qkv.as<T>(), *const d_o = a.d_o.as<T>();
    constexpr int threads = 256;
    delta_kernel<T><<<unsigned(ceil_div(tokens * s.heads, threads / 32)), threads, 0, queue>>>(s, d_o, a.o.as<T>(), delta);
    with_tile(a.heads, [&]<int tile>() {
      const int query_bytes = shared_bytes(a.heads, tile, 5, 1), key_bytes = shared_bytes(a.heads, tile, 6, 2);
      allow_shared(query_kernel<tile, T>, query_bytes), allow_shared(key_kernel<tile, T>, key_bytes);
      query_kernel<tile, T>
          <<<grid_of(a.heads, tokens, s.heads, tile), tile * lanes, query_bytes, queue>>>(s, qkv, d_o, a.lse.f32(), delta, a.dqkv.as<T>());
      key_kernel<tile, T>
          <<<grid_of(a.heads, tokens, s.kv_heads, tile), tile * lanes, key_bytes, queue>>>(s, qkv, d_o, a.lse.f32(), delta, a.dqkv.as<T>());
    });
  });
  launched("attention backward");
}

}  // namespace octet::cuda
