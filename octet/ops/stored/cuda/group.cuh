#pragma once

// Only for *.cuda.cu files: the lanes of a group of 128 values, which 16 threads of a warp have, 8 values each.

#include "octet/numerics/drawn.hpp"
#include "octet/ops/stored/codec.math.hpp"
#include "octet/ops/stored/cuda/drawn.cuh"
#include "octet/tensor/cuda/lanes.cuh"

namespace octet::cuda {

/// Where a thread's values are: from `at`, a multiple of 8, `count` of them exist, 1 .. 8.
struct EightCursor {
  std::int64_t at;
  int count;
};

/// whole: for calls with groups of 128 values that all exist.
template <bool whole>
struct GroupLanesOf {
  static constexpr int threads = 16, packs = 1;
  static constexpr float float_max = 0x1.fffffep127f;
  using Value = Pack<8>;
  struct Group {
    Value v[packs];
  };
  /// Values to be encoded. most: max |value|, NaN where one is NaN; it does not count what Tiny::keep raised.
  struct Scaled {
    Value value;
    float most;
  };

  __device__ __forceinline__ int lane() const { return threadIdx.x % threads; }
  __device__ __forceinline__ bool first_of_group() const { return lane() == 0; }

  /// f(0, cursor) if this thread has values.
  template <class F>
  __device__ __forceinline__ void each_pack(std::int64_t count, std::int64_t group, const F& f) const {
    const std::int64_t at = group * storage_block + lane() * 8;
    if constexpr (whole) f(0, EightCursor{at, 8});
    else if (at < count) f(0, EightCursor{at, count - at < 8 ? int(count - at) : 8});
  }
  template <class F>
  __device__ __forceinline__ void each_pack(std::int64_t count, std::int64_t group, Group& x, const F& f) const {
    if constexpr (!whole) x.v[0] = Value::all(0);
    each_pack(count, group, f);
  }

  template <class F>
  __device__ __forceinline__ Value map(const Value& x, const F& f) const {
    return cuda::map(x, f);
  }
  __device__ __forceinline__ Value sqrt(const Value& x) const { return cuda::sqrt(x); }
  __device__ __forceinline__ float sqrt(float x) const { return sqrtf(x); }
  /// x * scale; with Tiny::keep, magnitudes other than 0 are at least `least`.
  __device__ __forceinline__ Scaled scaled(const Value& x, float scale, Tiny tiny, float least) const {
    Scaled y{x * scale, most_of(x) * scale};
    if (tiny == Tiny::keep && has_below(y.value, least))
      y.value = cuda::map(y.value, [least](float v) { return ops::kept_above(v, least); });
    return y;
  }
  /// max |x| of this thread, of finite values.
  __device__ __forceinline__ float own_amax(const Group& x) const {
    const float most = most_of(x.v[0]);
    if (most <= float_max) return most;
    return largest_of(cuda::map(x.v[0], [](float v) { return ops::finite_magnitude(v); }));
  }
  __device__ __forceinline__ float group_max(const Value& most) const { return group_max(largest_of(most)); }
  /// Of numbers.
  __device__ __forceinline__ float group_max(float x) const {
#pragma unroll
    for (int step = threads / 2; step > 0; step /= 2) x = fmaxf(__shfl_xor_sync(~0u, x, step), x);
    return x;
  }
  __device__ __forceinline__ float group_min(const Value& least) const {
    float x = least.v[0];
#pragma unroll
    for (int i = 1; i < 8; ++i) x = octet::smaller(least.v[i], x);
#pragma unroll
    for (int step = threads / 2; step > 0; step /= 2) x = octet::smaller(__shfl_xor_sync(~0u, x, step), x);
    return x;
  }

  __device__ __forceinline__ Value load(const float* p, EightCursor c) const {
    if (c.count == 8) return cuda::load<8>(p, c.at);
    return each<float>(c, [&](int i) { return p[c.at + i]; });
  }
  __device__ __forceinline__ Value load(const Bf16* p, EightCursor c) const {
    if (c.count == 8) return cuda::load<8>(p, c.at);
    return each<float>(c, [&](int i) { return to_float(p[c.at + i]); });
  }
  __device__ __forceinline__ Value load(const Fp16* p, EightCursor c) const {
    if (c.count == 8) return cuda::load<8>(p, c.at);
    return each<float>(c, [&](int i) { return to_float(p[c.at + i]); });
  }
  /// E4M3.
  __device__ __forceinline__ Value load(const std::uint8_t* p, EightCursor c) const {
    const uint2 q = c.count == 8 ? *reinterpret_cast<const uint2*>(p + c.at) : codes_of(p, c);
    Value x;
    const unsigned word[2] = {q.x, q.y};
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      unsigned both;
      asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(both) : "h"(std::uint16_t(word[j / 2] >> (j % 2 * 16))));
      fp16_values(both, x.v[2 * j], x.v[2 * j + 1]);
    }
    return x;
  }

  template <class Draws>
  __device__ __forceinline__ void store(float* p, EightCursor c, const Value& x, const Draws&) const {
    if (c.count == 8) return cuda::store(p, c.at, x);
    put(c, [&](int i) { p[c.at + i] = x.v[i]; });
  }
  __device__ __forceinline__ void store(Bf16* p, EightCursor c, const Value& x, ops::Nearest) const {
    if (c.count == 8) return cuda::store(p, c.at, x);
    put(c, [&](int i) { p[c.at + i] = to_bf16(x.v[i]); });
  }
  template <class Draws>
  __device__ __forceinline__ void store(Bf16* p, EightCursor c, const Value& x, const Draws& draws) const {
    const auto eight = draws.eight(c.at);
    if (c.count == 8) return RowLanes<32, 8>{}.store_drawn(p, c.at, x, [&](std::int64_t) { return eight.words; });
    put(c, [&](int i) { p[c.at + i] = to_bf16_stochastic(x.v[i], unsigned(eight.half(i)) << 16); });
  }
  __device__ __forceinline__ void store(Fp16* p, EightCursor c, const Scaled& x, ops::Nearest) const {
    const Value y = x.most <= Fp16::max ? x.value : cuda::map(x.value, [](float v) { return ops::saturated(v, Fp16::max); });
    store_halves(p, c, [&](int j) { return fp16_pair(y.v[2 * j], y.v[2 * j + 1]); });
  }
  template <class Draws>
  __device__ __forceinline__ void store(Fp16* p, EightCursor c, const Scaled& x, const Draws& draws) const {
    const auto eight = draws.eight(c.at);
    const Value& y = x.value;
    if (x.most <= most_drawn)
      return store_halves(
          p, c, [&](int j) { return drawn_halves(y.v[2 * j], y.v[2 * j + 1], eight.thirteen(2 * j), eight.thirteen(2 * j + 1)); });
    const auto one = [&](int i) { return unsigned(encode_fp16_drawn_lanes(y.v[i], eight.half(i))); };
    store_halves(p, c, [&](int j) { return one(2 * j) | one(2 * j + 1) << 16; });
  }
  __device__ __forceinline__ void store(std::uint8_t* p, EightCursor c, const Scaled& x, ops::Nearest) const {
    const Value y = x.most <= float_max ? x.value : cuda::map(x.value, [](float v) { return ops::infinite_as_nan(v); });
    unsigned two[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) two[j] = encode_two<E4M3>(y.v[2 * j], y.v[2 * j + 1]);
    store_codes(p, c, make_uint2(__byte_perm(two[0], two[1], 0x5410), __byte_perm(two[2], two[3], 0x5410)));
  }
  template <class Draws>
  __device__ __forceinline__ void store(std::uint8_t* p, EightCursor c, const Scaled& x, const Draws& draws) const {
    const auto eight = draws.eight(c.at);
    const Value& y = x.value;
    if (x.most <= most_drawn) return store_codes(p, c, make_uint2(drawn_codes(y.v, eight, 0), drawn_codes(y.v + 4, eight, 4)));
    unsigned word[2] = {0, 0};
#pragma unroll
    for (int i = 0; i < 8; ++i)
      word[i / 4] |= unsigned(encode_drawn_lanes<E4M3>(ops::infinite_as_nan(y.v[i]), eight.half(i))) << (i % 4 * 8);
    store_codes(p, c, make_uint2(word[0], word[1]));
  }

 private:
  /// Whether a magnitude other than 0 is below `least`. The bits of a magnitude less one, of which those of 0 are the largest.
  __device__ __forceinline__ static bool has_below(const Value& x, float least) {
    unsigned lowest = ~0u;
#pragma unroll
    for (int i = 0; i < 8; ++i) lowest = min(lowest, 2 * __float_as_uint(x.v[i]) - 1);
    return lowest < 2 * __float_as_uint(least) - 1;
  }
  template <class T, class F>
  __device__ __forceinline__ static Value each(EightCursor c, const F& f) {
    Value x;
#pragma unroll
    for (int i = 0; i < 8; ++i) x.v[i] = i < c.count ? f(i) : 0.0f;
    return x;
  }
  template <class F>
  __device__ __forceinline__ static void put(EightCursor c, const F& f) {
#pragma unroll
    for (int i = 0; i < 8; ++i)
      if (i < c.count) f(i);
  }
  /// Codes one by one, in words as a wide load gives them; 0 beyond the count.
  __device__ __forceinline__ static uint2 codes_of(const std::uint8_t* p, EightCursor c) {
    unsigned word[2] = {0, 0};
#pragma unroll
    for (int i = 0; i < 8; ++i)
      if (i < c.count) word[i / 4] |= unsigned(p[c.at + i]) << (i % 4 * 8);
    return make_uint2(word[0], word[1]);
  }
  /// f(j): the pair of values 2 j and 2 j + 1.
  template <class F>
  __device__ __forceinline__ static void store_halves(Fp16* p, EightCursor c, const F& f) {
    unsigned word[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) word[j] = f(j);
    if (c.count == 8) *reinterpret_cast<uint4*>(p + c.at) = make_uint4(word[0], word[1], word[2], word[3]);
    else put(c, [&](int i) { p[c.at + i].bits = std::uint16_t(word[i / 2] >> (i % 2 * 16)); });
  }
  __device__ __forceinline__ static void store_codes(std::uint8_t* p, EightCursor c, uint2 q) {
    if (c.count == 8) *reinterpret_cast<uint2*>(p + c.at) = q;
    else put(c, [&](int i) { p[c.at + i] = std::uint8_t(byte_of(q, i)); });
  }
};
using GroupLanes = GroupLanesOf<false>;

}  // namespace octet::cuda
