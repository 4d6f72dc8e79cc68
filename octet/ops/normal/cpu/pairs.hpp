#pragma once

// Only for *.cpu.cpp files: normal values in registers.

#include "octet/ops/normal/normal.math.hpp"
#include "octet/tensor/cpu/lanes.hpp"

namespace octet::cpu::OCTET_ISA {

/// As many pairs as a register has lanes: elements `first` to first + 2 * width - 1, or the first `count` of them, to `to`. `first` is a
/// multiple of 4.
template <class T>
void fill_pairs(std::uint64_t key, float deviation, T* to, std::int64_t first, std::int64_t count) {
  Vec u, v;
  for (int i = 0; i < width; i += 2) {
    const RandomWords r = philox(key, std::uint64_t(first / 4 + i / 2));
    u[i] = uniform(r.w[0]), v[i] = uniform(r.w[1]), u[i + 1] = uniform(r.w[2]), v[i + 1] = uniform(r.w[3]);
  }
  const auto z = ops::normal_pair(u, v);
  const Vec one = z.first * deviation, other = z.second * deviation;
  T values[2 * width];
  for (int i = 0; i < width; ++i) {
    if constexpr (sizeof(T) == 2) values[2 * i] = to_bf16(one[i]), values[2 * i + 1] = to_bf16(other[i]);
    else values[2 * i] = one[i], values[2 * i + 1] = other[i];
  }
  __builtin_memcpy(to, values, std::size_t(count < 2 * width ? count : 2 * width) * sizeof(T));
}

}  // namespace octet::cpu::OCTET_ISA
