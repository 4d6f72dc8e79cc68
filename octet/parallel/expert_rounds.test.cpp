#include "octet/parallel/expert_rounds.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "octet/base/check.hpp"

namespace octet::parallel {
namespace {

using Round = nn::ExpertExchange::Round;

std::int64_t sum(const std::vector<std::int64_t>& of) { return std::accumulate(of.begin(), of.end(), std::int64_t(0)); }

// Tables of ranks whose tokens choose the experts from `first` on, all the same ones.
std::vector<std::int32_t> tables_of(const ExpertRoom& room, const std::vector<std::int64_t>& tokens, std::int64_t first) {
  std::vector<std::int32_t> out;
  for (const std::int64_t own : tokens) {
    out.push_back(std::int32_t(own));
    for (std::int64_t g = 0; g < room.chunks(); ++g) {
      const auto n = std::int32_t(room.chunk(own, g).count);
      std::vector<std::int32_t> visits(std::size_t(room.ranks)), choices(std::size_t(room.experts));
      for (std::int64_t k = 0; k < room.choices; ++k) {
        choices[std::size_t(first + k)] = n;
        visits[std::size_t((first + k) / room.experts_of_rank())] = n;
      }
      out.insert(out.end(), visits.begin(), visits.end()), out.insert(out.end(), choices.begin(), choices.end());
    }
  }
  return out;
}

// Each rank's rounds have its tokens in their order; what one sends another receives; and all of it has room.
void expect_rounds(const ExpertRoom& room, const std::vector<std::int64_t>& tokens, std::int64_t first, std::size_t least) {
  const std::vector<std::int32_t> tables = tables_of(room, tokens, first);
  const std::int64_t most = room.most_tokens(tables);
  std::vector<std::vector<Round>> all;
  for (int r = 0; r < int(room.ranks); ++r) all.push_back(room.rounds(tables, r));
  ASSERT_GE(all[0].size(), least);
  for (std::size_t r = 0; r < all.size(); ++r) {
    ASSERT_EQ(all[r].size(), all[0].size());
    std::int64_t at = 0, choices = 0;
    for (std::size_t i = 0; i < all[r].size(); ++i) {
      const Round& round = all[r][i];
      EXPECT_EQ(round.tokens.first, at);
      at += round.tokens.count, choices += round.choices;
      EXPECT_LE(sum(round.in), room.visits(most));
      EXPECT_LE(round.choices, room.rows(most));
      for (std::size_t other = 0; other < all.size(); ++other) EXPECT_EQ(round.out[other], all[other][i].in[r]);
    }
    EXPECT_EQ(at, tokens[r]);
    std::int64_t here = 0;  // choices of experts of this rank
    for (std::int64_t k = 0; k < room.choices; ++k)
      if ((first + k) / room.experts_of_rank() == std::int64_t(r)) here += sum({tokens.begin(), tokens.end()});
    EXPECT_EQ(choices, here);
  }
}

TEST(ExpertRounds, HaveRoomWhateverTokensChoose) {
  for (const double factor : {1.0, 1.25, 2.0, 3.5})
    for (const auto [ranks, experts, choices] : {std::array<std::int64_t, 3>{2, 4, 2}, {4, 8, 1}, {4, 64, 8}, {8, 16, 4}, {8, 8, 2}}) {
      const ExpertRoom room{factor, ranks, experts, choices};
      if (!room.bounded()) continue;
      for (const std::int64_t tokens : {0, 1, 3, 64, 1000}) {
        std::vector<std::int64_t> of_ranks(std::size_t(ranks), tokens);
        expect_rounds(room, of_ranks, 0, 1), expect_rounds(room, of_ranks, experts - choices, 1);
        of_ranks[0] = tokens / 2, of_ranks.back() = 0;  // as an evaluation's last batch
        expect_rounds(room, of_ranks, 0, 1);
      }
    }
}

// By hand: all tokens choose both experts of rank 0, so twice the rows of equal loads come there.
TEST(ExpertRounds, AreAsManyAsTheFullestRankNeeds) {
  const ExpertRoom room{1, 2, 4, 2}, more{1.5, 2, 4, 2}, all{2, 2, 4, 2};
  EXPECT_TRUE(room.bounded() && more.bounded());
  EXPECT_FALSE(all.bounded());
  EXPECT_EQ(room.rows(100), 200);
  EXPECT_EQ(more.rows(100), 300);
  EXPECT_EQ(all.rows(100), 400);
  EXPECT_EQ(room.rounds(tables_of(room, {100, 100}, 0), 1).size(), 2u);
  EXPECT_EQ(more.rounds(tables_of(more, {100, 100}, 0), 0).size(), 2u);
  EXPECT_EQ(more.rounds(tables_of(more, {100, 100}, 1), 0).size(), 1u) << "one expert of each rank";
  EXPECT_EQ(room.visits(100), 2 * 84) << "5 of 6 tokens visit a rank by chance";
  EXPECT_EQ(room.rounds(tables_of(room, {100, 100}, 1), 0).size(), 2u) << "all tokens visit both ranks";
}

TEST(ExpertRounds, VisitsAreByChance) {
  EXPECT_EQ(visit_chance(2, 4, 4), 1);
  EXPECT_DOUBLE_EQ(visit_chance(2, 4, 2), 1 - 1.0 / 6);
  EXPECT_DOUBLE_EQ(visit_chance(1, 8, 2), 0.25);
}

}  // namespace
}  // namespace octet::parallel
