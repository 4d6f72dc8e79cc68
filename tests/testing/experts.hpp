#pragma once

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "octet/ops/expert_map/expert_map.hpp"
#include "tests/testing/tensors.hpp"

// Shared by tests of the ops of experts: choices of many kinds, and their maps.

namespace octet::testing {

/// How tokens choose: by chance, all the same experts, only some experts, most tokens one expert.
enum class Choice { by_chance, all_the_same, only_some, skewed };
inline constexpr Choice choices_of_every_kind[] = {Choice::by_chance, Choice::all_the_same, Choice::only_some, Choice::skewed};

inline std::vector<std::int32_t> chosen_experts(std::int64_t tokens, std::int64_t choices, std::int64_t experts, Choice kind,
                                                unsigned seed = 1) {
  std::mt19937 random(seed);
  std::vector<std::int32_t> out, order(static_cast<std::size_t>(experts));
  for (std::int64_t t = 0; t < tokens; ++t) {
    std::iota(order.begin(), order.end(), 0);
    if (kind == Choice::all_the_same) std::reverse(order.begin(), order.end());
    else if (kind == Choice::only_some) std::shuffle(order.begin(), order.begin() + std::max(choices, experts / 2), random);
    else std::shuffle(order.begin() + (kind == Choice::skewed && t % 4 != 0 ? 1 : 0), order.end(), random);
    out.insert(out.end(), order.begin(), order.begin() + choices);
  }
  return out;
}

inline Tensor int_tensor(Stream& stream, const std::vector<std::int32_t>& values, Shape shape) {
  const Tensor t = stream.empty(shape, DType::i32, Lifetime::run);
  if (stream.device() == Device::cpu) std::copy(values.begin(), values.end(), t.as<std::int32_t>());
  return t;
}

struct MapCase {
  std::int64_t tokens, choices, experts, tile;
  Choice kind = Choice::by_chance;
};
inline std::vector<MapCase> map_cases() {
  std::vector<MapCase> out;
  for (const std::int64_t experts : {1, 3, 8, 64})
    for (const std::int64_t choices : {1, 2, 8})
      for (const std::int64_t tokens : {0, 1, 7, 129})
        for (const Choice kind : choices_of_every_kind)
          if (choices <= experts) out.push_back({tokens, choices, experts, tokens == 7 ? 8 : 16, kind});
  return out;
}

inline ops::ExpertMap map_of(Stream& stream, const MapCase& c, unsigned seed = 1) {
  const ops::ExpertMap map = ops::empty_expert_map(stream, c.tokens, c.choices, c.experts, c.tile, Lifetime::run);
  ops::expert_map(stream, int_tensor(stream, chosen_experts(c.tokens, c.choices, c.experts, c.kind, seed), {c.tokens, c.choices}), map);
  return map;
}

}  // namespace octet::testing
