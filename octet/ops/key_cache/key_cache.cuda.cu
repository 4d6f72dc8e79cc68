#include <cooperative_groups.h>

#include <algorithm>
#include <bit>

#include "octet/ops/key_cache/key_cache.kernels.hpp"
#include "octet/ops/key_cache/key_cache.math.hpp"
#include "octet/tensor/cuda/early.cuh"
#include "octet/tensor/cuda/lanes.cuh"

namespace octet::cuda {
namespace {

namespace groups = cooperative_groups;

constexpr int warps = 16, most_columns = 512;

struct Places {
  const std::int32_t *sequence, *place;
};
Places places_of(const ops::TokenPlaces& at) { return {at.sequence.as<std::int32_t>(), at.place.as<std::int32_t>()}; }

struct Sizes {
  int heads, kv_heads, d, dv, columns;
  std::int64_t capacity;
  std::int64_t window = 0;
  __device__ __forceinline__ std::int64_t first_row(int sequence, int head) const {
    return (std::int64_t(sequence) * kv_heads + head) * capacity;
  }
};
Sizes sizes_of(const ops::QkvShape& h, const ops::KeyRows& r) {
  return {int(h.heads), int(h.kv_heads), int(h.head_dim), int(h.value_dim()), int(h.columns()), r.capacity};
}

// A warp for a key or value head of a token. grid: Hkv, T, keys and values.
template <class T, class Row>
__global__ void store_keys_kernel(Sizes s, Places at, bool read_back, T* qkv, Row* keys, Row* values, float* key_descales,
                                  float* value_descales) {
  wait_for_earlier_work();
  let_later_work_begin();
  const int head = blockIdx.x, token = blockIdx.y, lane = threadIdx.x, sequence = at.sequence[token];
  if (sequence < 0) return;
  const bool of_values = blockIdx.z == 1;
  const int d = of_values ? s.dv : s.d, first = of_values ? (s.heads + s.kv_heads) * s.d : s.heads * s.d;
  T* const x = qkv + std::int64_t(token) * s.columns + first + head * d;
  const std::int64_t row = s.first_row(sequence, head) + at.place[token];
  Row* const to = (of_values ? values : keys) + row * d;
  if constexpr (std::is_same_v<Row, E4M3>) {
    float most = 0;
    for (int c = lane; c < d; c += 32) most = octet::larger(octet::magnitude(cuda::load<1>(x, c).v[0]), most);
    const BlockScale<float> scale = ops::key_scale(warp_max(most));
    if (lane == 0) (of_values ? value_descales : key_descales)[row] = scale.descale;
    std::uint8_t* const codes = reinterpret_cast<std::uint8_t*>(to);
    for (int c = lane; c < d; c += 32) {
      codes[c] = encode<E4M3>(cuda::load<1>(x, c).v[0] * scale.scale);
      if (read_back) cuda::store(x, c, Pack<1>::all(decode<E4M3>(codes[c]) * scale.descale));
    }
  } else {
    for (int c = lane; c < d; c += 32) to[c] = x[c];
  }
}

// The part of a head's result that one warp has: unscaled, of exponentials below exp(most). A lane has every 32nd of up to 32 C columns.
template <int C>
struct Partial {
  float most = -__builtin_inff(), sum = 0, out[C] = {};
};
/// Keys that a warp reads at once, since each is a chain of loads and exchanges.
template <int C>
inline constexpr int at_once = C <= 4 ? 8 : 32 / C;

// Rows j, j + warps, ... of `keys` rows; others are 0.
template <int C, class Row>
__device__ __forceinline__ void load_rows(const Row* rows, int columns, std::int64_t j, std::int64_t keys, int lane,
                                          float (&x)[at_once<C>][C]) {
#pragma unroll
  for (int n = 0; n < at_once<C>; ++n) {
    const std::int64_t at = j + n * warps;
#pragma unroll
    for (int i = 0; i < C; ++i)
      x[n][i] = lane + 32 * i < columns && at < keys ? cuda::load<1>(rows, at * columns + lane + 32 * i).v[0] : 0.0f;
  }
}

// The scores of such rows; those beyond `keys` are minus infinity.
template <int C>
__device__ __forceinline__ void scores_of(const float (&q)[C], const float (&k)[at_once<C>][C], const float* descales, std::int64_t j,
                                          std::int64_t keys, float (&score)[at_once<C>]) {
#pragma unroll
  for (int n = 0; n < at_once<C>; ++n) {
    const std::int64_t at = j + n * warps;
    float sum = 0;
#pragma unroll
    for (int i = 0; i < C; ++i) sum = fmaf(q[i], k[n][i], sum);
    sum = warp_sum(sum);
    score[n] = at < keys ? sum * (descales != nullptr ? descales[at] : 1.0f) : -__builtin_inff();
  }
}

// Keys `warp`, `warp` + warps, ... Values are loaded beside keys, so that a round waits once.
template <int C, class Row>
__device__ void attend(const Sizes& s, const float (&q)[C], const Row* k, const Row* v, const float* k_descales, const float* v_descales,
                       std::int64_t keys, int warp, int lane, Partial<C>& p) {
#pragma unroll 1
  for (std::int64_t j = warp; j < keys; j += warps * at_once<C>) {
    float key[at_once<C>][C], value[at_once<C>][C], score[at_once<C>];
    load_rows<C>(k, s.d, j, keys, lane, key), load_rows<C>(v, s.dv, j, keys, lane, value);
    scores_of<C>(q, key, k_descales, j, keys, score);
    float next = p.most;
#pragma unroll
    for (int n = 0; n < at_once<C>; ++n) next = fmaxf(next, score[n]);
    const float keep = math::exp(p.most - next);
    p.sum *= keep, p.most = next;
#pragma unroll
    for (int i = 0; i < C; ++i) p.out[i] *= keep;
#pragma unroll
    for (int n = 0; n < at_once<C>; ++n) {
      const std::int64_t at = j + n * warps;
      if (at >= keys) continue;
      const float e = math::exp(score[n] - next), weight = v_descales != nullptr ? e * v_descales[at] : e;
      p.sum += e;
#pragma unroll
      for (int i = 0; i < C; ++i) p.out[i] = fmaf(weight, value[n][i], p.out[i]);
    }
  }
}

// A block's part of a head's result: its maximum, its sum, and dv values. In shared memory, with those of its warps and a factor for each.
struct BlockParts {
  float *factors, *of_warps, *of_block;
  int dv;

  __device__ __forceinline__ BlockParts(float* shared, int dv)
      : factors(shared), of_warps(shared + warps), of_block(of_warps + warps * (dv + 2)), dv(dv) {}
  static constexpr int floats(int dv) { return warps + (warps + 1) * (dv + 2); }

  template <int C>
  __device__ __forceinline__ void put(const Partial<C>& p, int warp, int lane) const {
    float* const own = of_warps + warp * (dv + 2);
    if (lane == 0) own[0] = p.most, own[1] = p.sum;
#pragma unroll
    for (int i = 0; i < C; ++i)
      if (lane + 32 * i < dv) own[2 + lane + 32 * i] = p.out[i];
  }

  /// The part of the block, of those of all warps.
  __device__ __forceinline__ void add_warps(int warp, int lane) const {
    __syncthreads();
    if (warp == 0) {
      const float most = lane < warps ? of_warps[lane * (dv + 2)] : -__builtin_inff(), most_of_all = warp_max(most);
      if (lane < warps) factors[lane] = factor(most, most_of_all);
      if (lane == 0) of_block[0] = most_of_all;
    }
    __syncthreads();
    for (int c = int(threadIdx.x) + 1; c < dv + 2; c += 32 * warps) {
      float x = 0;
#pragma unroll
      for (int w = 0; w < warps; ++w) x += of_warps[w * (dv + 2) + c] * factors[w];
      of_block[c] = x;
    }
  }

  /// The result, of the parts of a cluster's blocks, by its first block.
  template <class T>
  __device__ __forceinline__ void write(const groups::cluster_group& cluster, T* out) const {
    cluster.sync();
    if (cluster.block_rank() == 0) {
      const int blocks = int(cluster.num_blocks());
      float most = -__builtin_inff(), sum = 0;
      for (int b = 0; b < blocks; ++b) most = fmaxf(most, cluster.map_shared_rank(of_block, b)[0]);
      for (int b = 0; b < blocks; ++b) sum += part_of(cluster, b, 1, most);
      for (int c = int(threadIdx.x); c < dv; c += 32 * warps) {
        float x = 0;
        for (int b = 0; b < blocks; ++b) x += part_of(cluster, b, 2 + c, most);
        cuda::store(out, c, Pack<1>::all(x / sum));
      }
    }
    cluster.sync();  // the first block has read the others' parts
  }

 private:
  // Of a part without keys, whose maximum is minus infinity, 0.
  static __device__ __forceinline__ float factor(float most, float most_of_all) {
    return most == -__builtin_inff() ? 0.0f : math::exp(most - most_of_all);
  }
  __device__ __forceinline__ float part_of(const groups::cluster_group& cluster, int block, int i, float most) const {
    const float* const part = cluster.map_shared_rank(of_block, block);
    return part[i] * factor(part[0], most);
  }
};

// A cluster of blocks for a query head of a token, each of which has a run of its keys. grid: H clusters, T.
template <int C, class T, class Row>
__global__ void __launch_bounds__(32 * warps, 1)
    cached_attention_kernel(Sizes s, Places at, float factor, const T* qkv, const Row* keys, const Row* values, const float* key_descales,
                            const float* value_descales, T* o) {
  extern __shared__ float shared[];
  wait_for_earlier_work();
  let_later_work_begin();
  const groups::cluster_group cluster = groups::this_cluster();
  const int blocks = int(cluster.num_blocks()), head = int(blockIdx.x) / blocks, token = blockIdx.y;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, sequence = at.sequence[token];
  T* const out = o + (std::int64_t(token) * s.heads + head) * s.dv;
  if (sequence < 0) {
    for (int c = threadIdx.x; c < s.dv; c += 32 * warps) cuda::store(out, c, Pack<1>::all(0.0f));
    return;
  }
  float q[C];
#pragma unroll
  for (int i = 0; i < C; ++i) {
    const int c = lane + 32 * i;
    q[i] = c < s.d ? cuda::load<1>(qkv, std::int64_t(token) * s.columns + head * s.d + c).v[0] * factor : 0.0f;
  }
  const std::int64_t first_key = ops::first_place(at.place[token], s.window), all_keys = at.place[token] + 1 - first_key;
  const std::int64_t run = (all_keys + blocks - 1) / blocks, skipped = run * cluster.block_rank(),
                     first = s.first_row(sequence, head / (s.heads / s.kv_heads)) + first_key + skipped;
  Partial<C> p;
  attend<C>(s, q, keys + first * s.d, values + first * s.dv, key_descales != nullptr ? key_descales + first : nullptr,
            value_descales != nullptr ? value_descales + first : nullptr, min(run, all_keys - skipped), warp, lane, p);
  const BlockParts parts(shared, s.dv);
  parts.put(p, warp, lane);
  parts.add_warps(warp, lane);
  parts.write(cluster, out);
}

// Blocks that share the keys of a head: more where a sequence may be long.
unsigned blocks_of_head(std::int64_t capacity) {
  constexpr std::int64_t keys_of_block = 256, most_blocks = 8;
  return unsigned(std::bit_floor(std::uint64_t(std::clamp<std::int64_t>(capacity / keys_of_block, 1, most_blocks))));
}

/// f<C>() of the least C whose lanes have so many columns.
template <class F>
void with_columns(std::int64_t columns, const F& f) {
  if (columns <= 64) f.template operator()<2>();
  else if (columns <= 128) f.template operator()<4>();
  else if (columns <= 256) f.template operator()<8>();
  else f.template operator()<most_columns / 32>();
}

// f<T, Row>() of the types of qkv and of the rows.
template <class F>
void with_types(const Tensor& qkv, const ops::KeyRows& rows, const F& f) {
  dispatch<float, Bf16, Fp16>(qkv.dtype, "key cache", [&]<class T>() {
    if (rows.coded()) f.template operator()<T, E4M3>();
    else f.template operator()<T, T>();
  });
}

void require_limits(const Tensor& qkv, const ops::QkvShape& heads) {
  constexpr std::int64_t most_tokens = 65535;  // blocks along a grid's second dimension
  if (std::max(heads.head_dim, heads.value_dim()) > most_columns || qkv.shape[0] > most_tokens)
    throw DeviceError(format("attention over stored keys on a GPU takes heads of up to {} and {} tokens at once, got {} and {}",
                             most_columns, most_tokens, std::max(heads.head_dim, heads.value_dim()), qkv.shape[0]));
}

}  // namespace

void store_keys(Queue queue, const ops::StoreKeys& a) {
  if (a.qkv.shape[0] == 0) return;
  require_limits(a.qkv, a.heads);
  with_types(a.qkv, a.to, [&]<class T, class Row>() {
    const Blocks blocks{dim3(unsigned(a.heads.kv_heads), unsigned(a.qkv.shape[0]), 2), 32};
    launch_early("store_keys_kernel", store_keys_kernel<T, Row>, blocks, queue, sizes_of(a.heads, a.to), places_of(a.at), a.read_back,
                 a.qkv.as<T>(), a.to.keys.as<Row>(), a.to.values.as<Row>(), a.to.key_descales.f32(), a.to.value_descales.f32());
  });
}

void cached_attention(Queue queue, const ops::CachedAttention& a, const Tensor&) {
  if (a.qkv.shape[0] == 0) return;
  require_limits(a.qkv, a.heads);
  Sizes sizes = sizes_of(a.heads, a.from);
  sizes.window = a.window;
  with_types(a.qkv, a.from, [&]<class T, class Row>() {
    with_columns(std::max(a.heads.head_dim, a.heads.value_dim()), [&]<int C>() {
      const unsigned cluster = blocks_of_head(a.from.capacity);
      const Blocks blocks{.grid = dim3(unsigned(a.heads.heads) * cluster, unsigned(a.qkv.shape[0])),
                          .threads = 32 * warps,
                          .cluster = cluster,
                          .shared_bytes = unsigned(sizeof(float)) * unsigned(BlockParts::floats(int(a.heads.value_dim())))};
      launch_early("cached_attention_kernel", cached_attention_kernel<C, T, Row>, blocks, queue, sizes, places_of(a.at), a.heads.scale(),
                   a.qkv.as<T>(), a.from.keys.as<Row>(), a.from.values.as<Row>(), a.from.key_descales.f32(), a.from.value_descales.f32(),
                   a.o.as<T>());
    });
  });
}

}  // namespace octet::cuda
