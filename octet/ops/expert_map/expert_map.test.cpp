#include <gtest/gtest.h>

#include <map>

#include "tests/testing/experts.hpp"

namespace octet::ops {
namespace {

using testing::map_cases, testing::map_of, testing::MapCase;

TEST(ExpertMap, PlacesEveryChoiceByExpertThenByToken) {
  for (const MapCase& c : map_cases()) {
    Stream s(Device::cpu);
    const ExpertMap map = map_of(s, c);
    const auto chosen = testing::chosen_experts(c.tokens, c.choices, c.experts, c.kind);
    std::map<std::int32_t, std::vector<std::int32_t>> of_expert;
    for (std::size_t i = 0; i < chosen.size(); ++i) of_expert[chosen[i]].push_back(std::int32_t(i));
    std::vector<std::int32_t> source;
    for (std::int32_t e = 0; e < c.experts; ++e) {
      EXPECT_EQ(map.groups.begin.as<std::int32_t>()[e], std::int32_t(source.size()));
      EXPECT_EQ(map.groups.count.as<std::int32_t>()[e], std::int32_t(of_expert[e].size()));
      source.insert(source.end(), of_expert[e].begin(), of_expert[e].end());
      while (std::int64_t(source.size()) % c.tile != 0) source.push_back(-1);
    }
    EXPECT_EQ(map.groups.begin.as<std::int32_t>()[c.experts], std::int32_t(source.size()));
    ASSERT_LE(std::int64_t(source.size()), map.rows());
    source.resize(std::size_t(map.rows()), -1);
    for (std::int64_t r = 0; r < map.rows(); ++r) {
      const std::int32_t i = source[std::size_t(r)];
      ASSERT_EQ(map.source.as<std::int32_t>()[r], i);
      if (i >= 0) {
        ASSERT_EQ(map.row.as<std::int32_t>()[i], r);
      }
    }
  }
}

// The worst choice of T tokens: expert e has counts[e] of them, no one more than T.
TEST(ExpertMap, TheBoundOfRowsIsReachedAndNeverPassed) {
  for (const std::int64_t tile : {1, 8, 128})
    for (const std::int64_t tokens : {0, 1, 5, 300})
      for (const std::int64_t experts : {1, 4, 9}) {
        std::int64_t left = tokens, most = 0;  // K = 1: one row each for all experts but the first
        for (std::int64_t e = experts - 1; e >= 0 && left > 0; --e) {
          const std::int64_t count = e == 0 ? left : 1;
          left -= count, most += round_up(count, tile);
        }
        const std::int64_t bound = rows_of_experts(tokens, 1, experts, tile);
        EXPECT_GE(bound, most);
        EXPECT_LT(bound, most + tile) << tokens << " " << experts << " " << tile;
      }
}

TEST(ExpertMap, RefusesWhatDoesNotFit) {
  Stream s(Device::cpu);
  const ExpertMap map = empty_expert_map(s, 4, 2, 8, 16, Lifetime::run);
  EXPECT_THROW(expert_map(s, testing::int_tensor(s, std::vector<std::int32_t>(8, 8), {4, 2}), map), ContractError)
      << "there is no expert 8";
  EXPECT_THROW(expert_map(s, s.empty({3, 2}, DType::i32), map), ContractError);
  EXPECT_THROW(expert_map(s, s.empty({4, 2}, DType::f32), map), ContractError);
  ExpertMap small = map;
  small.source = map.source.rows(0, 16);
  EXPECT_THROW(expert_map(s, s.zeros({4, 2}, DType::i32), small), ContractError);
  EXPECT_THROW(rows_of_experts(4, 0, 8, 16), ContractError);
}

TEST(ExpertMap, DryRunNeedsTheSameMemory) {
  testing::expect_dry_run_agrees([](Stream& s) { map_of(s, {40, 2, 8, 16}); });
}

}  // namespace
}  // namespace octet::ops
