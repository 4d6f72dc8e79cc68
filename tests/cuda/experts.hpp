#pragma once

#include <numeric>

#include "octet/ops/expert_map/expert_map.hpp"
#include "tests/cuda/parity.hpp"

// Shared by the cases of ops of experts: choices, their maps, and rows of experts.

namespace octet::parity {

/// T tokens choose K of the first `used` of E experts.
struct Choosing {
  std::int64_t tokens, choices, experts, tile, used;

  std::string name() const { return format("T {} K {} E {} ({} used) tile {}", tokens, choices, experts, used, tile); }
};
inline std::vector<Choosing> choosings() {
  return {{0, 1, 1, 128, 1},       {0, 2, 8, 16, 8},       {1, 1, 3, 8, 3},        {7, 2, 3, 8, 2},        {129, 1, 1, 128, 1},
          {129, 2, 64, 128, 64},   {1000, 8, 64, 128, 64}, {1000, 8, 64, 128, 8},  {3000, 6, 64, 128, 20}, {5000, 8, 128, 128, 128},
          {700, 4, 1000, 16, 900}, {300, 8, 256, 128, 9},  {20000, 8, 64, 128, 64}};
}

inline std::vector<std::int32_t> chosen_of(const Choosing& c) {
  std::vector<std::int32_t> out, order(std::size_t(c.used), 0);
  for (std::int64_t t = 0; t < c.tokens; ++t) {
    std::iota(order.begin(), order.end(), 0);
    for (std::int64_t k = 0; k < c.choices; ++k) {  // the first K of a random order
      const std::int64_t other = k + philox(9, std::uint64_t(t * c.choices + k)).w[0] % std::uint32_t(c.used - k);
      std::swap(order[std::size_t(k)], order[std::size_t(other)]);
    }
    out.insert(out.end(), order.begin(), order.begin() + c.choices);
  }
  return out;
}

inline ops::ExpertMap map_on(Side& side, const Choosing& c) {
  const ops::ExpertMap map = ops::empty_expert_map(side.stream(), c.tokens, c.choices, c.experts, c.tile, Lifetime::run);
  ops::expert_map(side.stream(), side.raw(chosen_of(c), {c.tokens, c.choices}), map);
  return map;
}

/// Values of [R, C]; NaN in rows without a token.
inline Tensor rows_of_tokens(Side& side, const ops::ExpertMap& map, std::int64_t cols, std::uint64_t seed, DType dtype, double scale = 2) {
  const HostCopy source(side.stream(), map.source);
  std::vector<float> values = testing::gaussian(std::size_t(map.rows() * cols), seed, scale);
  for (std::int64_t r = 0; r < map.rows(); ++r)
    if (source.as<std::int32_t>()[r] < 0) std::fill_n(values.begin() + r * cols, cols, NAN);
  return side.from(values, {map.rows(), cols}, dtype);
}

}  // namespace octet::parity
