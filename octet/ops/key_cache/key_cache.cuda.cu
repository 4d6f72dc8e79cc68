#include <cooperative_groups.h>

#include <algorithm>
#include <bit>

#include "octet/ops/key_cache/key_cache.cuh"
#include "octet/ops/key_cache/key_cache.math.hpp"
#include "octet/ops/rope/rope.math.hpp"
#include "octet/tensor/cuda/early.cuh"
#include "octet/tensor/cuda/lanes.cuh"

namespace octet::cuda {
namespace {

namespace groups = cooperative_groups;

constexpr int warps = 16;

// The part of a head's result that one warp has: unscaled, of exponentials below exp(most). A lane has C neighbouring columns.
template <int C>
struct Partial {
  float most = -__builtin_inff(), sum = 0, out[C] = {};
};
/// Keys that a warp reads at once, since each is a chain of loads and exchanges.
template <int C>
inline constexpr int at_once = C <= 4   ? 8
                               : C <= 8 ? 4
                                        : 1;

// Rows of keys or values, from the first that a block reads.
template <class Row>
struct Rows {
  const Row* at;
  const float* descales;  // of codes; otherwise null
  int columns;

  __device__ __forceinline__ float descale(std::int64_t row) const { return descales != nullptr ? descales[row] : 1.0f; }
};

/// Whether a lane's columns are loaded at once. Heads whose columns are no multiple of C take the kernel of the longest ones.
template <int C>
inline constexpr bool packs = C < most_columns / 32;

// Rows j, j + warps, ... of `keys` rows; others are 0.
template <int C, class Row>
__device__ __forceinline__ void load_rows(const Rows<Row>& rows, std::int64_t j, std::int64_t keys, int lane, float (&x)[at_once<C>][C]) {
  const int first = lane * C;
#pragma unroll
  for (int n = 0; n < at_once<C>; ++n) {
    const std::int64_t at = j + n * warps;
    const Row* const row = rows.at + at * rows.columns;
    Pack<C> p{};
    if constexpr (packs<C>) {
      if (first < rows.columns && at < keys) p = cuda::load<C>(row, first);
    }
#pragma unroll
    for (int i = 0; i < C; ++i) {
      if (!packs<C> && first + i < rows.columns && at < keys) p.v[i] = cuda::load<1>(row, first + i).v[0];
      x[n][i] = p.v[i];
    }
  }
}

// The scores of such rows; those beyond `keys` are minus infinity.
template <int C, class Row>
__device__ __forceinline__ void scores_of(const float (&q)[C], const float (&k)[at_once<C>][C], const Rows<Row>& rows, std::int64_t j,
                                          std::int64_t keys, float (&score)[at_once<C>]) {
#pragma unroll
  for (int n = 0; n < at_once<C>; ++n) {
    const std::int64_t at = j + n * warps;
    float sum = 0;
#pragma unroll
    for (int i = 0; i < C; ++i) sum = fmaf(q[i], k[n][i], sum);
    sum = warp_sum(sum);
    score[n] = at < keys ? sum * rows.descale(at) : -__builtin_inff();
  }
}

// Keys `warp`, `warp` + warps, ... Values are loaded beside keys, so that a round waits once.
template <int C, class Row>
__device__ void attend(const float (&q)[C], const Rows<Row>& k, const Rows<Row>& v, std::int64_t keys, int warp, int lane, Partial<C>& p) {
#pragma unroll 1
  for (std::int64_t j = warp; j < keys; j += warps * at_once<C>) {
    float key[at_once<C>][C], value[at_once<C>][C], score[at_once<C>];
    load_rows<C>(k, j, keys, lane, key), load_rows<C>(v, j, keys, lane, value);
    scores_of<C>(q, key, k, j, keys, score);
    float top = p.most;
#pragma unroll
    for (int n = 0; n < at_once<C>; ++n) top = fmaxf(top, score[n]);
    const float keep = math::exp(p.most - top);
    p.sum *= keep, p.most = top;
#pragma unroll
    for (int i = 0; i < C; ++i) p.out[i] *= keep;
#pragma unroll
    for (int n = 0; n < at_once<C>; ++n) {
      const std::int64_t at = j + n * warps;
      if (at >= keys) continue;
      const float e = math::exp(score[n] - top), weight = e * v.descale(at);
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
      if (lane * C + i < dv) own[2 + lane * C + i] = p.out[i];
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

template <class T>
__device__ __forceinline__ float rounded_to(float x) {
  if constexpr (std::is_same_v<T, float>) return x;
  else return to_float(from_float<T>(x));
}

// The angles of a token's place; no cosines: heads are at their positions.
struct Angles {
  const float *cos, *sin;
};

// A head of a token as qkv has it once it is turned, rounded to T: the lane's columns.
template <int C, class T>
__device__ __forceinline__ void load_turned(const T* x, int d, const Angles& at, int lane, float (&out)[C]) {
  const int half = d / 2;
#pragma unroll
  for (int i = 0; i < C; ++i) {
    const int c = lane * C + i;
    if (c >= d) {
      out[i] = 0;
    } else if (at.cos == nullptr) {
      out[i] = cuda::load<1>(x, c).v[0];
    } else {
      const int angle = c < half ? c : c - half;
      const auto pair = ops::turned_pair<false>(cuda::load<1>(x, angle), cuda::load<1>(x, angle + half), cuda::load<1>(at.cos, angle),
                                                cuda::load<1>(at.sin, angle));
      out[i] = rounded_to<T>(c < half ? pair.first.v[0] : pair.second.v[0]);
    }
  }
}

// A key or value head in a lane's columns becomes its stored form; with `stores` it is stored, too. The descale of its codes.
template <int C, class Row>
__device__ __forceinline__ float as_stored(float (&x)[C], int d, int lane, Row* row, float* descale, bool stores) {
  if constexpr (std::is_same_v<Row, E4M3>) {
    float most = 0;
#pragma unroll
    for (int i = 0; i < C; ++i) most = octet::larger(octet::magnitude(x[i]), most);
    const BlockScale<float> scale = ops::key_scale(warp_max(most));
    if (stores && lane == 0) *descale = scale.descale;
#pragma unroll
    for (int i = 0; i < C; ++i) {
      const std::uint8_t code = encode<E4M3>(x[i] * scale.scale);
      x[i] = decode<E4M3>(code);
      if (stores && lane * C + i < d) reinterpret_cast<std::uint8_t*>(row)[lane * C + i] = code;
    }
    return scale.descale;
  } else {
#pragma unroll
    for (int i = 0; i < C; ++i)
      if (stores && lane * C + i < d) cuda::store(row, lane * C + i, Pack<1>::all(x[i]));
    return 1;
  }
}

// The key and value of a next token.
template <int C>
struct Own {
  float key[C], value[C], key_descale, value_descale;

  /// To the others of a warp.
  __device__ __forceinline__ void add_to(Partial<C>& p, const float (&q)[C]) const {
    float sum = 0;
#pragma unroll
    for (int i = 0; i < C; ++i) sum = fmaf(q[i], key[i], sum);
    const float score = warp_sum(sum) * key_descale, top = fmaxf(p.most, score);
    const float keep = math::exp(p.most - top), e = math::exp(score - top);
    p.sum = p.sum * keep + e, p.most = top;
#pragma unroll
    for (int i = 0; i < C; ++i) p.out[i] = fmaf(e * value_descale, value[i], p.out[i] * keep);
  }
};

// Tensors of a call; keys and values are stored here where tokens are the next ones.
template <class T, class Row>
struct Cache {
  const T* qkv;
  Row *keys, *values;
  float *key_descales, *value_descales;
  const float *cos, *sin;  // of the next tokens' table, or null
  T* o;
};

// The key and value of a token, by a warp, which with `stores` puts them into row `row`.
template <int C, class T, class Row>
__device__ __forceinline__ Own<C> make_own(const Sizes& s, const Cache<T, Row>& x, const T* token, int head, std::int64_t row,
                                           const Angles& at, int lane, bool stores) {
  Own<C> own;
  load_turned<C>(token + (s.heads + head) * s.d, s.d, at, lane, own.key);
  load_turned<C>(token + (s.heads + s.kv_heads) * s.d + head * s.dv, s.dv, {}, lane, own.value);
  own.key_descale = as_stored<C>(own.key, s.d, lane, x.keys + row * s.d, x.key_descales + row, stores);
  own.value_descale = as_stored<C>(own.value, s.dv, lane, x.values + row * s.dv, x.value_descales + row, stores);
  return own;
}

// Hints, before the places of tokens may be read: token t is probably of sequence t, and its first keys are read. The blocks that share
// them have a part each.
template <class T, class Row>
__device__ __forceinline__ void prefetch_keys(const Sizes& s, const Cache<T, Row>& x, int head, int token, int part, int parts) {
  constexpr std::int64_t most = 512;
  const int group = s.heads / s.kv_heads, n = int(min(s.capacity, most)), share = (n + group * parts - 1) / (group * parts);
  const std::int64_t first = s.first_row(token, head / group);
  const int begin = (head % group * parts + part) * share, rows = min(share, n - begin);
  if (token >= s.sequences || s.window > 0 || rows <= 0) return;
  const auto hint = [&](const Row* all, int d) {
    const unsigned row = unsigned(d) * sizeof(Row);
    if (row % 16 == 0) prefetch(all + (first + begin) * d, unsigned(rows) * row);
  };
  hint(x.keys, s.d), hint(x.values, s.dv);
}

// A cluster of blocks for a query head of a token, each of which has a run of its keys. grid: H clusters, T. `next`: queries and keys are
// turned first, and the first head that shares a key head stores the token's key and value. All of these heads make them for themselves.
template <bool next, int C, class T, class Row>
__global__ void __launch_bounds__(32 * warps, 1) cached_attention_kernel(Sizes s, Places at, float factor, Cache<T, Row> x) {
  extern __shared__ float shared[];
  let_later_work_begin();
  const groups::cluster_group cluster = groups::this_cluster();
  const int blocks = int(cluster.num_blocks()), head = int(blockIdx.x) / blocks, token = blockIdx.y;
  if (next && threadIdx.x == 0) prefetch_keys(s, x, head, token, int(cluster.block_rank()), blocks);
  wait_for_earlier_work();
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, sequence = at.sequence[token];
  T* const out = x.o + (std::int64_t(token) * s.heads + head) * s.dv;
  if (sequence < 0) {
    for (int c = threadIdx.x; c < s.dv; c += 32 * warps) cuda::store(out, c, Pack<1>::all(0.0f));
    return;
  }
  const T* const own = x.qkv + std::int64_t(token) * s.columns;
  const int place = at.place[token], group = s.heads / s.kv_heads, kv_head = head / group;
  Angles angles{};
  if (next && x.cos != nullptr) angles = {x.cos + std::int64_t(place) * (s.d / 2), x.sin + std::int64_t(place) * (s.d / 2)};
  float q[C];
  load_turned<C>(own + head * s.d, s.d, angles, lane, q);
#pragma unroll
  for (int i = 0; i < C; ++i) q[i] *= factor;
  const std::int64_t first_key = ops::first_place(place, s.window), all_keys = place + 1 - first_key;
  const std::int64_t run = (all_keys + blocks - 1) / blocks, skipped = run * cluster.block_rank(),
                     first = s.first_row(sequence, kv_head) + first_key + skipped;
  const bool coded = x.key_descales != nullptr;
  const Rows<Row> k{x.keys + first * s.d, coded ? x.key_descales + first : nullptr, s.d},
      v{x.values + first * s.dv, coded ? x.value_descales + first : nullptr, s.dv};
  const std::int64_t keys = min(run, all_keys - skipped);
  Partial<C> p;
  if constexpr (next) {
    const bool here = keys > 0 && skipped + keys == all_keys, adds = here && warp == warps - 1;  // which has the fewest of the others
    const auto make = [&] {
      return make_own<C>(s, x, own, kv_head, s.first_row(sequence, kv_head) + place, angles, lane, head % group == 0);
    };
    Own<C> last;
    if (adds && packs<C>) last = make();
    attend<C>(q, k, v, here ? keys - 1 : keys, warp, lane, p);
    if (adds && !packs<C>) last = make();  // the registers of the longest heads are full before
    if (adds) last.add_to(p, q);
  } else {
    attend<C>(q, k, v, keys, warp, lane, p);
  }
  const BlockParts parts(shared, s.dv);
  parts.put(p, warp, lane);
  parts.add_warps(warp, lane);
  parts.write(cluster, out);
}

// Blocks that share the keys of a head: so many that each may read its keys in one round of its warps.
unsigned blocks_of_head(std::int64_t capacity) {
  constexpr std::int64_t keys_of_block = 128, most_blocks = 8;
  return unsigned(std::bit_ceil(std::uint64_t(std::clamp<std::int64_t>(ceil_div(capacity, keys_of_block), 1, most_blocks))));
}

/// f<C>() of the least C whose lanes have the columns of keys and values, in whole packs.
template <class F>
void with_columns(const ops::QkvShape& heads, const F& f) {
  const std::int64_t most = std::max(heads.head_dim, heads.value_dim());
  const auto fits = [&](int C) { return most <= 32 * C && heads.head_dim % C == 0 && heads.value_dim() % C == 0; };
  if (fits(2)) f.template operator()<2>();
  else if (fits(4)) f.template operator()<4>();
  else if (fits(8)) f.template operator()<8>();
  else f.template operator()<most_columns / 32>();
}

// Of places whose keys are stored, or of `next` ones.
template <bool next>
void attend_tokens(Queue queue, const ops::CachedAttention& a, const ops::RopeTable& table) {
  if (a.qkv.shape[0] == 0) return;
  require_limits(a.qkv, a.heads);
  Sizes sizes = sizes_of(a.heads, a.from);
  sizes.window = a.window;
  with_types(a.qkv, a.from, [&]<class T, class Row>() {
    with_columns(a.heads, [&]<int C>() {
      const unsigned cluster = blocks_of_head(a.from.capacity);
      const Blocks blocks{.grid = dim3(unsigned(a.heads.heads) * cluster, unsigned(a.qkv.shape[0])),
                          .threads = 32 * warps,
                          .cluster = cluster,
                          .shared_bytes = unsigned(sizeof(float)) * unsigned(BlockParts::floats(int(a.heads.value_dim())))};
      const Cache<T, Row> cache{a.qkv.as<T>(),
                                a.from.keys.as<Row>(),
                                a.from.values.as<Row>(),
                                a.from.key_descales.f32(),
                                a.from.value_descales.f32(),
                                table.cos.f32(),
                                table.sin.f32(),
                                a.o.as<T>()};
      launch_early("cached_attention_kernel", cached_attention_kernel<next, C, T, Row>, blocks, queue, sizes, places_of(a.at),
                   a.heads.scale(), cache);
    });
  });
}

}  // namespace

void cached_attention(Queue queue, const ops::CachedAttention& a, const Tensor&) { attend_tokens<false>(queue, a, {}); }

void next_token_attention(Queue queue, const ops::NextTokenAttention& a, const Tensor&) {
  attend_tokens<true>(queue, a.attention(), a.table);
}

}  // namespace octet::cuda
