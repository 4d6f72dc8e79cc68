#include <algorithm>
#include <bit>

#include "octet/ops/key_cache/key_cache.cuh"
#include "octet/ops/key_cache/key_cache.math.hpp"
#include "octet/ops/key_cache/parts_of_keys.cuh"
#include "octet/ops/quantize/cuda/few_rows.cuh"
#include "octet/ops/quantize/quantize.kernels.hpp"
#include "octet/ops/rope/rope.math.hpp"

namespace octet::cuda {
namespace {

using namespace parts_of_keys;

// A head's result: its values, and where they have scales of their own, its codes, by one block that has all values.
template <class T>
struct Result {
  const TileJob& codes;
  T *out, *own;  // of all heads; in shared memory, from which they are encoded
  int token, column, dv;

  __device__ __forceinline__ void put(int heads, int c, float x) const {
    cuda::store(out + std::int64_t(token) * heads * dv + column, c, Pack<1>::all(x));
    if (codes.row.part != Part::nothing) cuda::store(own, c, Pack<1>::all(x));
  }
  /// After all threads of the block have put theirs, and waited.
  __device__ __forceinline__ void encode() const {
    if constexpr (!std::is_same_v<T, Fp16>) {
      const int thread = int(threadIdx.x), c = thread * 8;
      if (codes.row.part == Part::blocks && blockIdx.x == 0 && token == 0) fill_padding(codes.row);
      if (codes.row.part == Part::nothing || thread / 32 * 256 >= dv) return;  // a warp has 256 values
      const bool here = c < dv;
      const int col = here ? column + c : int(codes.cols);
      const Eight<T> v = here ? Eight<T>::at(own + c) : Eight<T>{};
      const float scale = codes.row.part == Part::constant ? fabsf(*codes.row.scale) : few_rows::scale_of_block(codes, token, col, v);
      if (here) few_rows::put_codes(codes, token, col, v, scale);
    }
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
__global__ void __launch_bounds__(32 * warps, 1)
    cached_attention_kernel(Sizes s, Places at, float factor, Cache<T, Row> x, const __grid_constant__ TileJob codes) {
  extern __shared__ float4 room[];
  float* const shared = reinterpret_cast<float*>(room);
  let_later_work_begin();
  const groups::cluster_group cluster = groups::this_cluster();
  const int blocks = int(cluster.num_blocks()), head = int(blockIdx.x) / blocks, token = blockIdx.y;
  if (next && threadIdx.x == 0) prefetch_keys(s, x, head, token, int(cluster.block_rank()), blocks);
  wait_for_earlier_work();
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, sequence = at.sequence[token];
  const auto result = [&] {  // made where it is used, so that it takes no registers before
    return Result<T>{codes, x.o, reinterpret_cast<T*>(shared + BlockParts::floats(s.dv)), token, head * s.dv, s.dv};
  };
  if (sequence < 0) {
    if (cluster.block_rank() != 0) return;
    for (int c = threadIdx.x; c < s.dv; c += 32 * warps) result().put(s.heads, c, 0);
    __syncthreads();
    return result().encode();
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
  parts.write(cluster, [&](int c, float value) { result().put(s.heads, c, value); });
  if (cluster.block_rank() == 0) result().encode();
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

// The codes that blocks of heads make of a result: those of all rows, if each scale is known or that of values of one head.
TileJob codes_of_heads(const ops::Sink& o, int dv) {
  if (!o.spec.quantizes() || o.dtype == DType::f16 || !takes_few_rows(o) || !has_aligned_packs(o) || dv % 8 != 0) return {};
  const TileJob job = few_rows_job(o);
  const bool known = job.row.part == Part::constant, own = job.row.part == Part::blocks && dv % (1 << job.row.shift) == 0;
  return known || own ? job : TileJob{};
}

// Of places whose keys are stored, or of `next` ones.
template <bool next>
void attend_tokens(Queue queue, const ops::CachedAttention& a, const ops::RopeTable& table, const TileJob& codes) {
  if (a.qkv.shape[0] == 0) return;
  require_limits(a.qkv, a.heads);
  Sizes sizes = sizes_of(a.heads, a.from);
  sizes.window = a.window;
  const int dv = int(a.heads.value_dim());
  with_types(a.qkv, a.from, [&]<class T, class Row>() {
    with_columns(a.heads, [&]<int C>() {
      const unsigned cluster = blocks_of_head(a.from.capacity);
      const Blocks blocks{.grid = dim3(unsigned(a.heads.heads) * cluster, unsigned(a.qkv.shape[0])),
                          .threads = 32 * warps,
                          .cluster = cluster,
                          .shared_bytes = unsigned(sizeof(float)) * unsigned(dv + BlockParts::floats(dv))};
      const Cache<T, Row> cache{a.qkv.as<T>(),
                                a.from.keys.as<Row>(),
                                a.from.values.as<Row>(),
                                a.from.key_descales.f32(),
                                a.from.value_descales.f32(),
                                table.cos.f32(),
                                table.sin.f32(),
                                a.o.as<T>()};
      launch_early("cached_attention_kernel", cached_attention_kernel<next, C, T, Row>, blocks, queue, sizes, places_of(a.at),
                   a.heads.scale(), cache, codes);
    });
  });
}

}  // namespace

void cached_attention(Queue queue, const ops::CachedAttention& a, const Tensor&) { attend_tokens<false>(queue, a, {}, {}); }

void next_token_attention(Queue queue, const ops::NextTokenAttention& a, const Tensor&) {
  const TileJob codes = codes_of_heads(a.o, int(a.heads.value_dim()));
  attend_tokens<true>(queue, a.attention(), a.table, codes);
  if (a.o.spec.quantizes() && codes.row.part == Part::nothing) quantize(queue, a.o.plain, a.o, {});
}

}  // namespace octet::cuda
