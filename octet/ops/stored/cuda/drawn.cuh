#pragma once

// Only for *.cuda.cu files: stochastic rounding of eight values to FP16 or E4M3, with the bits of numerics/drawn.hpp.

#include "octet/numerics/philox.hpp"
#include "octet/ops/quantize/cuda/codes.cuh"

namespace octet::cuda {

/// philox() in fewer instructions: of a product of 64 bits in C++, nvcc 13 adds a 0 to the upper half.
__device__ __forceinline__ RandomWords philox_words(std::uint64_t key, std::uint64_t counter_low, std::uint64_t counter_high) {
  unsigned c[4] = {unsigned(counter_low), unsigned(counter_low >> 32), unsigned(counter_high), unsigned(counter_high >> 32)};
  unsigned k[2] = {unsigned(key), unsigned(key >> 32)};
#pragma unroll
  for (int round = 0; round < philox_rounds; ++round) {
    unsigned low[2], high[2];
    asm("{ .reg .b64 p; mul.wide.u32 p, %2, %3; mov.b64 {%0, %1}, p; }" : "=r"(low[0]), "=r"(high[0]) : "r"(c[0]), "r"(philox_multiplier0));
    asm("{ .reg .b64 p; mul.wide.u32 p, %2, %3; mov.b64 {%0, %1}, p; }" : "=r"(low[1]), "=r"(high[1]) : "r"(c[2]), "r"(philox_multiplier1));
    c[0] = high[1] ^ c[1] ^ k[0], c[1] = low[1], c[2] = high[0] ^ c[3] ^ k[1], c[3] = low[0];
    k[0] += philox_step0, k[1] += philox_step1;
  }
  return {{c[0], c[1], c[2], c[3]}};
}

/// 16 random bits per element: half e % 2 of word e % 8 / 2 of philox(key, e / 8, stream).
struct DrawnWords {
  std::uint64_t key, stream;
  std::int64_t first = 0;  // number of the value at 0, a multiple of 8

  /// Those of eight elements from `at` on, a multiple of 8.
  struct Eight {
    RandomWords words;
    __device__ __forceinline__ int half(int i) const { return int(__byte_perm(words.w[i / 2], 0, i % 2 ? 0x4432 : 0x4410)); }
    /// The upper 13 bits of a half.
    __device__ __forceinline__ unsigned thirteen(int i) const {
      return (i % 2 ? words.w[i / 2] : __byte_perm(words.w[i / 2], 0, 0x1044)) >> 19;
    }
  };
  __device__ __forceinline__ Eight eight(std::int64_t at) const { return {philox_words(key, std::uint64_t((first + at) / 8), stream)}; }
};

/// max |x|, NaN where a value is NaN: one instruction per value.
template <int N>
__device__ __forceinline__ float most_of(const Pack<N>& x) {
  float most = fabsf(x.v[0]);
#pragma unroll
  for (int i = 1; i < N; ++i) asm("max.NaN.f32 %0, %1, %0;" : "+f"(most) : "f"(fabsf(x.v[i])));
  return most;
}
/// Magnitudes to which `raise` can be added.
inline constexpr float most_drawn = 0x1p100f;

namespace detail {
/// |x| + raise, in bits below the mantissa that the format keeps; truncated, it is rounded stochastically. In the range of subnormal
/// numbers the least normal one is added first, which has their step. Every operation but the truncating sum is exact.
template <std::int32_t kept_bits, class Format>
__device__ __forceinline__ float raised(float x, unsigned raise) {
  constexpr float min_normal = Format::min_normal;
  const float lift = fabsf(x) < min_normal ? min_normal : 0.0f;
  return __uint_as_float((__float_as_uint(__fadd_rz(fabsf(x), lift)) + raise) & unsigned(kept_bits)) - lift;
}
struct DrawnE4m3 {
  static constexpr float min_normal = 0x1p-6f;
};
struct DrawnFp16 {
  static constexpr float min_normal = 0x1p-14f;
};
}  // namespace detail

/// encode_fp16_drawn_lanes() of two magnitudes with the signs of x and y; neither is above most_drawn or NaN.
__device__ __forceinline__ unsigned drawn_halves(float x, float y, unsigned x_raise, unsigned y_raise) {
  const float low = detail::raised<~0, detail::DrawnFp16>(x, x_raise), high = detail::raised<~0, detail::DrawnFp16>(y, y_raise);
  unsigned word;  // truncates, and larger values become 65504
  asm("cvt.rz.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word | (__byte_perm(__float_as_uint(x), __float_as_uint(y), 0x7632) & 0x80008000u);
}

/// encode_drawn_lanes<E4M3>() of four values that are neither above most_drawn nor NaN.
__device__ __forceinline__ unsigned drawn_codes(const float* x, const DrawnWords::Eight& draws, int first) {
  unsigned two[2], signs[2];
#pragma unroll
  for (int j = 0; j < 2; ++j) {
    const float low = x[2 * j], high = x[2 * j + 1];
    constexpr std::int32_t kept = ~0xFFFFF;
    two[j] = encode_two<E4M3>(detail::raised<kept, detail::DrawnE4m3>(low, unsigned(draws.half(first + 2 * j)) << 4),
                              detail::raised<kept, detail::DrawnE4m3>(high, unsigned(draws.half(first + 2 * j + 1)) << 4));
    signs[j] = __byte_perm(__float_as_uint(low), __float_as_uint(high), 0x0073);
  }
  return __byte_perm(two[0], two[1], 0x5410) | (__byte_perm(signs[0], signs[1], 0x5410) & 0x80808080u);
}

}  // namespace octet::cuda
