#pragma once

// Only for *.cpu.cpp files: the random bits of consecutive values, 16 for each.

#include "octet/numerics/philox.hpp"
#include "octet/tensor/cpu/lanes.hpp"

namespace octet::cpu::OCTET_ISA {

namespace detail {

// philox() of a few consecutive counters side by side, each in a lane of 64 bits with an undefined upper half. Several registers are
// processed at once, since each round depends on the previous one.
typedef std::uint64_t Words __attribute__((vector_size(sizeof(Vec))));
inline constexpr int a_register = sizeof(Words) / sizeof(std::uint64_t), at_once = 4, counters = a_register * at_once;

OCTET_HD Words product_of_lower_halves(Words a, Words b) {
#ifdef OCTET_ISA_v4
  return (Words)_mm512_mul_epu32((__m512i)a, (__m512i)b);
#else
  return (Words)_mm256_mul_epu32((__m256i)a, (__m256i)b);
#endif
}

/// The upper halves as lower ones; by a shuffle, because shifts compete with products for one port.
OCTET_HD Words upper_halves(Words v) {
#ifdef OCTET_ISA_v4
  return (Words)_mm512_shuffle_epi32((__m512i)v, _MM_PERM_ENUM(0b11'11'01'01));
#else
  return (Words)_mm256_shuffle_epi32((__m256i)v, 0b11'11'01'01);
#endif
}
OCTET_HD Words exclusive_or(Words a, Words b, Words c) {
#ifdef OCTET_ISA_v4
  return (Words)_mm512_ternarylogic_epi64((__m512i)a, (__m512i)b, (__m512i)c, 0b10010110);
#else
  return a ^ b ^ c;
#endif
}

/// out[8 k ..]: the eight halves of the words of counter first + k, in their order in memory.
OCTET_HD void draw_counters(std::uint64_t key, std::uint64_t high, std::uint64_t first, std::uint16_t* out) {
  Words number, c0[at_once], c1[at_once], c2[at_once], c3[at_once], k0 = Words{} + (key & 0xFFFFFFFFu), k1 = Words{} + (key >> 32);
  for (int i = 0; i < a_register; ++i) number[i] = first + std::uint64_t(i);
  for (int r = 0; r < at_once; ++r, number += std::uint64_t(a_register))
    c0[r] = number, c1[r] = number >> 32, c2[r] = Words{} + high, c3[r] = Words{} + (high >> 32);
#pragma GCC unroll 10
  for (int round = 0; round < philox_rounds; ++round, k0 += philox_step0, k1 += philox_step1) {
#pragma GCC unroll 4
    for (int r = 0; r < at_once; ++r) {
      const Words p0 = product_of_lower_halves(c0[r], Words{} + philox_multiplier0);
      const Words p1 = product_of_lower_halves(c2[r], Words{} + philox_multiplier1);
      c0[r] = exclusive_or(upper_halves(p1), c1[r], k0), c1[r] = p1, c2[r] = exclusive_or(upper_halves(p0), c3[r], k1), c3[r] = p0;
    }
  }
  Words in_turn;  // low[0], upper[0], low[1], ..
  for (int i = 0; i < a_register; ++i) in_turn[i] = std::uint64_t(i / 2 + i % 2 * a_register);
#pragma GCC unroll 4
  for (int r = 0; r < at_once; ++r, out += 8 * a_register) {
    const Words low = (c0[r] & 0xFFFFFFFFu) | c1[r] << 32, upper = (c2[r] & 0xFFFFFFFFu) | c3[r] << 32;
    const Words first_half = __builtin_shuffle(low, upper, in_turn),
                second_half = __builtin_shuffle(low, upper, in_turn + std::uint64_t(a_register / 2));
    __builtin_memcpy(out, &first_half, sizeof(Words));
    __builtin_memcpy(out + 4 * a_register, &second_half, sizeof(Words));
  }
}

}  // namespace detail

/// Elements of a buffer for the draws of `count` values.
constexpr std::int64_t draw_room(std::int64_t count) { return count + 8 * detail::counters; }

/// out[i], 0 <= i < count: the bits of value first + i, which are half e % 2 of word e % 8 / 2 of philox(key, e / 8, high), e = first + i.
/// `first` is a multiple of 8; out has draw_room(count) elements.
inline void draw(std::uint64_t key, std::uint64_t high, std::int64_t first, std::int64_t count, std::uint16_t* out) {
  for (std::int64_t at = 0; at < count; at += 8 * detail::counters)
    detail::draw_counters(key, high, std::uint64_t((first + at) / 8), out + at);
}

}  // namespace octet::cpu::OCTET_ISA
