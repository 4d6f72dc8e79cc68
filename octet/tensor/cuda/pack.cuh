#pragma once

// Only for *.cuda.cu files: a few floats side by side, as one thread of a GPU loads and stores them. It has the functions that shared row
// bodies call on a value (see octet/numerics/value.hpp), applied to every element.

#include "octet/numerics/sigmoid.hpp"

namespace octet::cuda {

template <int N>
struct Pack {
  float v[N];

  static __device__ __forceinline__ Pack all(float x) {
    Pack p;
#pragma unroll
    for (int i = 0; i < N; ++i) p.v[i] = x;
    return p;
  }
};

/// f of every element, or of every pair of elements.
template <int N, class F>
__device__ __forceinline__ Pack<N> map(const Pack<N>& a, F f) {
  Pack<N> p;
#pragma unroll
  for (int i = 0; i < N; ++i) p.v[i] = f(a.v[i]);
  return p;
}
template <int N, class F>
__device__ __forceinline__ Pack<N> map(const Pack<N>& a, const Pack<N>& b, F f) {
  Pack<N> p;
#pragma unroll
  for (int i = 0; i < N; ++i) p.v[i] = f(a.v[i], b.v[i]);
  return p;
}

#define OCTET_PACK_OPERATOR(op)                                                        \
  template <int N>                                                                     \
  __device__ __forceinline__ Pack<N> operator op(const Pack<N>& a, const Pack<N>& b) { \
    return map(a, b, [](float x, float y) { return x op y; });                         \
  }                                                                                    \
  template <int N>                                                                     \
  __device__ __forceinline__ Pack<N> operator op(const Pack<N>& a, float b) {          \
    return map(a, [b](float x) { return x op b; });                                    \
  }                                                                                    \
  template <int N>                                                                     \
  __device__ __forceinline__ Pack<N> operator op(float a, const Pack<N>& b) {          \
    return map(b, [a](float x) { return a op x; });                                    \
  }
OCTET_PACK_OPERATOR(+)
OCTET_PACK_OPERATOR(-)
OCTET_PACK_OPERATOR(*)
#undef OCTET_PACK_OPERATOR

// Division and square root, correctly rounded, by the compiler's steps for one value. The compiler processes values one by one, each after
// a range check. Here one check covers all values, which are then processed together, or one by one if one of them is far from 1.
namespace detail {
inline constexpr float far_below = 0x1p-60f, far_above = 0x1p60f;

struct Sizes {
  float least = 1, most = 1;
  __device__ __forceinline__ void add(float x) {
    least = fminf(fabsf(x), least);
    asm("max.NaN.f32 %0, %1, %0;" : "+f"(most) : "f"(fabsf(x)));
  }
  /// Of a value that may be 0, but not -0.
  __device__ __forceinline__ void add_or_zero(float x) { add(__float_as_uint(x) == 0 ? 1.0f : x); }
  __device__ __forceinline__ bool near_one() const { return least >= far_below && most <= far_above; }
};
__device__ __forceinline__ float quotient_near_one(float a, float b) {
  float r;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(b));
  r = fmaf(r, fmaf(-b, r, 1.0f), r);
  const float q = a * r;
  return fmaf(r, fmaf(-b, q, a), q);
}
__device__ __forceinline__ float root_near_one(float x) {
  float r;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  const float s = x * r;
  return fmaf(fmaf(-s, s, x), r * 0.5f, s);
}
}  // namespace detail

template <int N>
__device__ __forceinline__ Pack<N> operator/(const Pack<N>& a, const Pack<N>& b) {
  detail::Sizes sizes;
#pragma unroll
  for (int i = 0; i < N; ++i) sizes.add_or_zero(a.v[i]), sizes.add(b.v[i]);
  if (sizes.near_one()) return map(a, b, [](float x, float y) { return detail::quotient_near_one(x, y); });
  return map(a, b, [](float x, float y) { return x / y; });
}
template <int N>
__device__ __forceinline__ Pack<N> sqrt(const Pack<N>& x) {
  detail::Sizes sizes;
#pragma unroll
  for (int i = 0; i < N; ++i) sizes.add_or_zero(x.v[i]);
  if (sizes.near_one()) return map(x, [](float v) { return __float_as_uint(v) == 0 ? 0.0f : detail::root_near_one(v); });
  return map(x, [](float v) { return sqrtf(v); });
}

template <int N>
__device__ __forceinline__ Pack<N> larger(const Pack<N>& x, const Pack<N>& most) {
  return map(x, most, [](float a, float b) { return octet::larger(a, b); });
}
template <int N>
__device__ __forceinline__ Pack<N> smaller(const Pack<N>& x, const Pack<N>& least) {
  return map(x, least, [](float a, float b) { return octet::smaller(a, b); });
}
template <int N>
__device__ __forceinline__ Pack<N> magnitude(const Pack<N>& x) {
  return map(x, [](float a) { return octet::magnitude(a); });
}
template <int N>
__device__ __forceinline__ math::Sigmoid<Pack<N>> sigmoid(const Pack<N>& x) {
  math::Sigmoid<Pack<N>> s;
#pragma unroll
  for (int i = 0; i < N; ++i) {
    const auto one = math::sigmoid(x.v[i]);
    s.value.v[i] = one.value, s.complement.v[i] = one.complement;
  }
  return s;
}

/// The sum and the largest of a pack's elements.
template <int N>
__device__ __forceinline__ float sum_of(const Pack<N>& p) {
  float s = p.v[0];
#pragma unroll
  for (int i = 1; i < N; ++i) s += p.v[i];
  return s;
}
template <int N>
__device__ __forceinline__ float largest_of(const Pack<N>& p) {
  float m = p.v[0];
#pragma unroll
  for (int i = 1; i < N; ++i) m = octet::larger(p.v[i], m);
  return m;
}

/// Two values as BF16, the first in the low half. The bits are encode_bf16_lanes's for every float but NaN, which stays NaN.
__device__ __forceinline__ unsigned bf16_pair(float low, float high) {
  unsigned word;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
}
/// Two FP16 in a word, the first in the low half.
__device__ __forceinline__ void fp16_values(unsigned word, float& low, float& high) {
  asm("{ .reg .b16 l, h; mov.b32 {l, h}, %2; cvt.f32.f16 %0, l; cvt.f32.f16 %1, h; }" : "=f"(low), "=f"(high) : "r"(word));
}
/// Two values as FP16, the first in the low half. The bits are to_fp16()'s for every float but NaN, which stays NaN.
__device__ __forceinline__ unsigned fp16_pair(float low, float high) {
  unsigned word;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
}
/// Two values of 16 bits from a word, and back.
template <class T>
__device__ __forceinline__ void pair_values(unsigned word, float& low, float& high) {
  if constexpr (std::is_same_v<T, Fp16>) fp16_values(word, low, high);
  else low = __uint_as_float(word << 16), high = __uint_as_float(word & 0xFFFF0000u);
}
template <class T>
__device__ __forceinline__ unsigned pair_word(float low, float high) {
  if constexpr (std::is_same_v<T, Fp16>) return fp16_pair(low, high);
  else return bf16_pair(low, high);
}

/// 16 bytes of T in memory as a pack, and back.
template <class T>
__device__ __forceinline__ Pack<16 / int(sizeof(T))> unpacked(uint4 q) {
  const unsigned word[4] = {q.x, q.y, q.z, q.w};
  Pack<16 / int(sizeof(T))> out;
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    if constexpr (sizeof(T) == 4) out.v[j] = __uint_as_float(word[j]);
    else pair_values<T>(word[j], out.v[2 * j], out.v[2 * j + 1]);
  }
  return out;
}
template <class T, int N>
__device__ __forceinline__ uint4 packed(const Pack<N>& x) {
  static_assert(N * sizeof(T) == 16);
  if constexpr (sizeof(T) == 4)
    return make_uint4(__float_as_uint(x.v[0]), __float_as_uint(x.v[1]), __float_as_uint(x.v[2]), __float_as_uint(x.v[3]));
  else
    return make_uint4(pair_word<T>(x.v[0], x.v[1]), pair_word<T>(x.v[2], x.v[3]), pair_word<T>(x.v[4], x.v[5]),
                      pair_word<T>(x.v[6], x.v[7]));
}

/// N values of memory as one or more accesses of up to 16 bytes; p + at must be aligned to min(16, N * sizeof) bytes.
template <int N>
__device__ __forceinline__ Pack<N> load(const float* p, std::int64_t at) {
  Pack<N> out;
  if constexpr (N % 4 == 0) {
#pragma unroll
    for (int i = 0; i < N; i += 4) {
      const float4 q = *reinterpret_cast<const float4*>(p + at + i);
      out.v[i] = q.x, out.v[i + 1] = q.y, out.v[i + 2] = q.z, out.v[i + 3] = q.w;
    }
  } else {
#pragma unroll
    for (int i = 0; i < N; ++i) out.v[i] = p[at + i];
  }
  return out;
}
template <int N, class T>
requires(sizeof(T) == 2) __device__ __forceinline__ Pack<N> load(const T* p, std::int64_t at) {
  Pack<N> out;
  if constexpr (N == 8) {
    out = unpacked<T>(*reinterpret_cast<const uint4*>(p + at));
  } else if constexpr (N == 4) {
    const uint2 q = *reinterpret_cast<const uint2*>(p + at);
    pair_values<T>(q.x, out.v[0], out.v[1]), pair_values<T>(q.y, out.v[2], out.v[3]);
  } else if constexpr (N == 2) {
    pair_values<T>(*reinterpret_cast<const unsigned*>(p + at), out.v[0], out.v[1]);
  } else {
#pragma unroll
    for (int i = 0; i < N; ++i) out.v[i] = to_float(p[at + i]);
  }
  return out;
}

/// Values of 8-bit codes.
template <int N>
__device__ __forceinline__ Pack<N> load(const E4M3* p, std::int64_t at) {
  alignas(8) std::uint8_t codes[N];
  const std::uint8_t* const from = reinterpret_cast<const std::uint8_t*>(p) + at;
  if constexpr (N == 8) *reinterpret_cast<uint2*>(codes) = *reinterpret_cast<const uint2*>(from);
  else if constexpr (N == 4) *reinterpret_cast<unsigned*>(codes) = *reinterpret_cast<const unsigned*>(from);
  else
    for (int i = 0; i < N; ++i) codes[i] = from[i];
  Pack<N> out;
#pragma unroll
  for (int i = 0; i < N; ++i) out.v[i] = decode<E4M3>(codes[i]);
  return out;
}

template <int N>
__device__ __forceinline__ void store(float* p, std::int64_t at, const Pack<N>& x) {
  if constexpr (N % 4 == 0) {
#pragma unroll
    for (int i = 0; i < N; i += 4) *reinterpret_cast<float4*>(p + at + i) = make_float4(x.v[i], x.v[i + 1], x.v[i + 2], x.v[i + 3]);
  } else {
#pragma unroll
    for (int i = 0; i < N; ++i) p[at + i] = x.v[i];
  }
}
template <int N, class T>
requires(sizeof(T) == 2) __device__ __forceinline__ void store(T* p, std::int64_t at, const Pack<N>& x) {
  if constexpr (N == 8) {
    *reinterpret_cast<uint4*>(p + at) = packed<T>(x);
  } else if constexpr (N == 4) {
    *reinterpret_cast<uint2*>(p + at) = make_uint2(pair_word<T>(x.v[0], x.v[1]), pair_word<T>(x.v[2], x.v[3]));
  } else {
#pragma unroll
    for (int i = 0; i < N; ++i) p[at + i] = from_float<T>(x.v[i]);
  }
}

}  // namespace octet::cuda
