#pragma once

#include <cstdint>

#include "octet/base/hd.hpp"

namespace octet {

/// Four independent uniform 32-bit words.
struct RandomWords {
  std::uint32_t w[4];
};

/// Philox's multipliers, and the increment of the key per round.
inline constexpr std::uint32_t philox_multiplier0 = 0xD2511F53u, philox_multiplier1 = 0xCD9E8D57u;
inline constexpr std::uint32_t philox_step0 = 0x9E3779B9u, philox_step1 = 0xBB67AE85u;
inline constexpr int philox_rounds = 10;

/// Philox4x32-10, a counter-based generator: the same (key, counter) gives the same words on every backend, rank and thread, so
/// randomness needs no state. Source: Salmon et al. 2011, "Parallel Random Numbers: As Easy as 1, 2, 3".
OCTET_HD constexpr RandomWords philox(std::uint64_t key, std::uint64_t counter_low, std::uint64_t counter_high = 0) {
  std::uint32_t c[4] = {std::uint32_t(counter_low), std::uint32_t(counter_low >> 32),  //
                        std::uint32_t(counter_high), std::uint32_t(counter_high >> 32)};
  std::uint32_t k[2] = {std::uint32_t(key), std::uint32_t(key >> 32)};
  for (int round = 0; round < philox_rounds; ++round) {
    const std::uint64_t p0 = std::uint64_t(philox_multiplier0) * c[0], p1 = std::uint64_t(philox_multiplier1) * c[2];
    const std::uint32_t n0 = std::uint32_t(p1 >> 32) ^ c[1] ^ k[0], n2 = std::uint32_t(p0 >> 32) ^ c[3] ^ k[1];
    c[0] = n0, c[1] = std::uint32_t(p1), c[2] = n2, c[3] = std::uint32_t(p0);
    k[0] += philox_step0, k[1] += philox_step1;
  }
  return {{c[0], c[1], c[2], c[3]}};
}

/// Uniform in (0, 1): the upper 23 bits and a half, so that the sum is exact and 1 is never reached.
OCTET_HD constexpr float uniform(std::uint32_t word) { return (float(word >> 9) + 0.5f) * 0x1p-23f; }

/// FNV-1a of a path: the part of a Philox key that identifies a parameter or a site.
constexpr std::uint64_t hash_of(const char* s) {
  std::uint64_t h = 0xCBF29CE484222325u;
  for (; *s != 0; ++s) h = (h ^ std::uint64_t(static_cast<unsigned char>(*s))) * 0x100000001B3u;
  return h;
}

}  // namespace octet
