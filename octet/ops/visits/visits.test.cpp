#include "octet/ops/visits/visits.hpp"

#include <gtest/gtest.h>

#include <map>

#include "tests/testing/experts.hpp"
#include "tests/testing/testing.hpp"

namespace octet::ops {
namespace {

using testing::gaussian_tensor;

struct VisitCase {
  std::int64_t tokens, choices, experts, members;
  testing::Choice kind;
};

std::vector<VisitCase> visit_cases() {
  std::vector<VisitCase> out;
  for (const auto [experts, choices, members] : {std::array<std::int64_t, 3>{4, 1, 2}, {8, 2, 8}, {64, 8, 4}, {6, 6, 3}, {8, 3, 1}})
    for (const std::int64_t tokens : {0, 1, 131})
      for (const testing::Choice kind : testing::choices_of_every_kind) out.push_back({tokens, choices, experts, members, kind});
  return out;
}

// Of each token, the members of its choices, each with its own experts and weights: by the definition, with sets.
TEST(Visits, OfATokenAreOncePerMemberWithTheChoicesThere) {
  for (const VisitCase& c : visit_cases()) {
    Stream s(Device::cpu);
    const std::int64_t L = c.experts / c.members, C = std::min(c.choices, c.members), J = std::min(c.choices, L);
    const std::vector<std::int32_t> list = testing::chosen_experts(c.tokens, c.choices, c.experts, c.kind);
    const Tensor chosen = testing::int_tensor(s, list, {c.tokens, c.choices}), visited = s.empty({c.tokens, C}, DType::i32);
    visited_members(s, chosen, L, visited);
    const ExpertMap map = empty_expert_map(s, c.tokens, C, c.members, 1, Lifetime::run);
    expert_map(s, visited, map);
    const Tensor w = gaussian_tensor(s, {c.tokens, c.choices}, 3), weights = s.empty({map.rows(), J}, DType::f32);
    const PackedChoices packed{chosen, visited, map.row, L, s.empty({map.rows(), J}, DType::i32), weights};
    pack_choices(s, packed, w);
    for (std::int64_t t = 0; t < c.tokens; ++t) {
      std::map<std::int32_t, std::map<std::int32_t, float>> wanted, got;
      for (std::int64_t k = 0; k < c.choices; ++k) {
        const std::int32_t e = list[std::size_t(t * c.choices + k)];
        wanted[e / std::int32_t(L)][e % std::int32_t(L)] = w.f32()[t * c.choices + k];
      }
      for (std::int64_t i = 0; i < C; ++i) {
        const std::int32_t member = visited.as<std::int32_t>()[t * C + i], r = map.row.as<std::int32_t>()[t * C + i];
        ASSERT_EQ(member < 0, r < 0);
        if (r < 0) continue;
        ASSERT_EQ(got.count(member), 0u) << "a member is visited once";
        ASSERT_EQ(map.source.as<std::int32_t>()[r], t * C + i);
        for (std::int64_t j = 0; j < J; ++j)
          if (const std::int32_t e = packed.experts.as<std::int32_t>()[r * J + j]; e >= 0) got[member][e] = weights.f32()[r * J + j];
      }
      ASSERT_EQ(got, wanted);
    }
    const Tensor back = s.empty(w.shape, DType::f32);
    unpack_weights(s, packed, back);
    for (std::int64_t i = 0; i < w.count(); ++i) ASSERT_EQ(back.f32()[i], w.f32()[i]);
  }
}

TEST(Visits, RefuseWhatDoesNotFit) {
  Stream s(Device::null);
  const Tensor chosen = s.empty({4, 2}, DType::i32), visited = s.empty({4, 2}, DType::i32), w = s.empty({4, 2}, DType::f32);
  EXPECT_THROW(visited_members(s, chosen, 4, s.empty({4, 3}, DType::i32)), ContractError);
  EXPECT_THROW(visited_members(s, w, 4, visited), ContractError);
  PackedChoices p{chosen, visited, s.empty({4, 2}, DType::i32), 4, s.empty({8, 2}, DType::i32), s.empty({8, 2}, DType::f32)};
  pack_choices(s, p, w);
  EXPECT_THROW(pack_choices(s, p, s.empty({4, 3}, DType::f32)), ContractError);
  p.experts = {};
  EXPECT_THROW(pack_choices(s, p, w), ContractError);
  unpack_weights(s, p, w);
}

}  // namespace
}  // namespace octet::ops
