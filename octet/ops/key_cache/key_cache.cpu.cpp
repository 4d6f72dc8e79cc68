#include "octet/ops/attention/attention.math.hpp"
#include "octet/ops/key_cache/key_cache.kernels.hpp"
#include "octet/ops/key_cache/key_cache.math.hpp"
#include "octet/ops/quantize/quantize.kernels.hpp"
#include "octet/ops/rope/rope.kernels.hpp"
#include "octet/tensor/cpu/lanes.hpp"
#include "octet/tensor/cpu/parallel.hpp"

namespace octet::cpu::OCTET_ISA {
namespace {

// The first row of a head of a sequence.
std::int64_t first_row(const ops::KeyRows& r, std::int32_t sequence, std::int64_t head) {
  return (sequence * r.kv_heads + head) * r.capacity;
}

template <class T>
void store_row(T* x, const Tensor& rows, const Tensor& descales, std::int64_t row, bool read_back) {
  const std::int64_t d = rows.shape[1];
  if (!descales) return void(__builtin_memcpy(rows.as<T>() + row * d, x, std::size_t(d) * sizeof(T)));
  Vec most{};
  Lane{}.each(d, [&](auto at) { most = larger(magnitude(Lane{}.load(x, at)), most); });
  const BlockScale<float> scale = ops::key_scale(Lane{}.max(most));
  descales.f32()[row] = scale.descale;
  std::uint8_t* const codes = rows.u8() + row * d;
  Lane{}.each(d, [&](auto at) { store_raw(codes, at, to_bytes(encode_lanes<E4M3>(Vec(Lane{}.load(x, at) * scale.scale)))); });
  if (!read_back) return;
  const E4M3* const stored = rows.as<E4M3>() + row * d;
  Lane{}.each(d, [&](auto at) { Lane{}.store(x, at, Vec(Lane{}.load(stored, at) * scale.descale)); });
}

// The query heads that share one key head, of one token.
template <class T, class Rows>
struct Group {
  const ops::CachedAttention& a;
  CachedAttentionFloats floats;
  std::int64_t token, head, first_key, keys;
  const Rows *k, *v;
  const float *k_descales, *v_descales;
  float *query, *scores;

  Group(const ops::CachedAttention& a, std::int64_t token, std::int64_t head, float* scratch)
      : a(a),
        floats(a),
        token(token),
        head(head),
        first_key(ops::first_place(a.at.place.as<std::int32_t>()[token], a.window)),
        keys(a.at.place.as<std::int32_t>()[token] + 1 - first_key) {
    const std::int64_t first = first_row(a.from, a.at.sequence.as<std::int32_t>()[token], head) + first_key;
    k = a.from.keys.as<Rows>() + first * a.heads.head_dim, v = a.from.values.as<Rows>() + first * a.heads.value_dim();
    k_descales = a.from.key_descales ? a.from.key_descales.f32() + first : nullptr;
    v_descales = a.from.value_descales ? a.from.value_descales.f32() + first : nullptr;
    query = scratch, scores = query + a.heads.group() * floats.query;
  }

  void load_queries() const {
    const std::int64_t d = a.heads.head_dim, group = a.heads.group();
    const float factor = a.heads.scale();
    const T* const x = a.qkv.as<T>() + token * a.qkv.shape[1] + a.heads.query_column(head * group);
    for (std::int64_t h = 0; h < group; ++h)
      Lane{}.each(d, [&](auto at) { Lane{}.store(query + h * floats.query, at, Lane{}.load(x + h * d, at) * factor); });
  }

  // A key is read once for all heads of the group.
  void score() const {
    const std::int64_t d = a.heads.head_dim, group = a.heads.group();
    for (std::int64_t j = 0; j < keys; ++j) {
      const float descale = k_descales != nullptr ? k_descales[j] : 1.0f;
      for (std::int64_t h = 0; h < group; ++h)
        scores[h * floats.scores + j] = ops::dot_row(Lane{}, d, query + h * floats.query, k + j * d) * descale;
    }
  }

  void attend() const {
    const std::int64_t d = a.heads.value_dim(), group = a.heads.group();
    load_queries(), score();
    T* const o = a.o.as<T>() + token * a.o.shape[1] + head * group * d;
    for (std::int64_t h = 0; h < group; ++h) {
      float* const s = scores + h * floats.scores;
      const auto row = ops::exponentials_row(Lane{}, keys, s);
      if (v_descales != nullptr) Lane{}.each(keys, [&](auto at) { Lane{}.store(s, at, Lane{}.load(s, at) * Lane{}.load(v_descales, at)); });
      ops::weighted_rows(Lane{}, keys, d, s, v, 1.0f / row.sum, o + h * d);
    }
  }
};

template <class T, class Rows>
void attend_all(const ops::CachedAttention& a, const Tensor& workspace) {
  const std::int64_t heads = a.heads.kv_heads, width = a.heads.group() * a.heads.value_dim();
  const CachedAttentionFloats floats(a);
  for_each_uneven(a.qkv.shape[0] * heads, [&](std::int64_t job) {
    const std::int64_t token = job / heads, head = job % heads;
    if (a.at.sequence.as<std::int32_t>()[token] < 0) {
      __builtin_memset(a.o.as<T>() + token * a.o.shape[1] + head * width, 0, std::size_t(width) * sizeof(T));
      return;
    }
    Group<T, Rows>(a, token, head, workspace.f32() + this_thread() * floats.all).attend();
  });
}

}  // namespace

void store_keys(const ops::StoreKeys& a) {
  const ops::QkvShape& heads = a.heads;
  dispatch<float, Bf16, Fp16>(a.qkv.dtype, "store_keys", [&]<class T>() {
    for_each(a.qkv.shape[0], heads.key_columns() * 8, [&](std::int64_t t) {
      const std::int32_t sequence = a.at.sequence.as<std::int32_t>()[t], place = a.at.place.as<std::int32_t>()[t];
      if (sequence < 0) return;
      T* const x = a.qkv.as<T>() + t * a.qkv.shape[1];
      for (std::int64_t h = 0; h < heads.kv_heads; ++h) {
        const std::int64_t row = first_row(a.to, sequence, h) + place;
        store_row(x + heads.key_column(h), a.to.keys, a.to.key_descales, row, a.read_back);
        store_row(x + heads.value_column(h), a.to.values, a.to.value_descales, row, a.read_back);
      }
    });
  });
}

void cached_attention(const ops::CachedAttention& a, const Tensor& workspace) {
  dispatch<float, Bf16, Fp16>(a.qkv.dtype, "cached_attention", [&]<class T>() {
    if (a.from.coded()) attend_all<T, E4M3>(a, workspace);
    else attend_all<T, T>(a, workspace);
  });
}

void next_token_attention(const ops::NextTokenAttention& a, const Tensor& workspace) {
  if (a.table.cos) rope_forward({.qkv = a.qkv, .heads = a.heads, .table = a.table, .places = a.at.place});
  store_keys({.qkv = a.qkv, .heads = a.heads, .to = a.rows, .at = a.at});
  cached_attention(a.attention(), workspace);
  if (a.o.spec.quantizes()) quantize(a.o.plain, a.o, {});
}

}  // namespace octet::cpu::OCTET_ISA
