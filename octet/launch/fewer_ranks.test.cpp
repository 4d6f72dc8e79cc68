#include "octet/launch/fewer_ranks.hpp"

#include <gtest/gtest.h>

#include <csignal>

namespace octet::launch {
namespace {

RankEnd exited(int rank, int code, double seconds = 1) { return {.rank = rank, .code = code, .seconds = seconds}; }
RankEnd killed(int rank, int signal, double seconds = 1) { return {.rank = rank, .signal = signal, .seconds = seconds}; }

TEST(RankThatIsLost, IsTheOneThatASignalEndedWhileOthersLostAPeer) {
  EXPECT_EQ(lost_rank({exited(0, 76, 2), killed(2, SIGKILL, 1), exited(1, 76, 3)}), 2);
  EXPECT_EQ(lost_rank({exited(0, 76, 1), exited(1, 76, 2), killed(2, SIGKILL, 9)}), 2) << "it hung, and the launcher killed it";
  EXPECT_EQ(lost_rank({exited(0, 76, 2), exited(1, 69, 1)}), 1) << "its device failed";
}

TEST(RankThatIsLost, IsNoneWhereNoRankCanBeToldFromTheOthers) {
  EXPECT_FALSE(lost_rank({exited(0, 76), exited(1, 76)}));
  EXPECT_FALSE(lost_rank({exited(0, 76, 1), killed(1, SIGKILL, 2), killed(2, SIGKILL, 2)}));
  EXPECT_FALSE(lost_rank({exited(0, 0), exited(1, 0)}));
  EXPECT_FALSE(lost_rank({exited(0, 2), exited(1, 2)})) << "another start would end alike";
  EXPECT_FALSE(lost_rank({exited(0, 75), exited(1, 75)})) << "stopped in order";
  EXPECT_FALSE(lost_rank({}));
}

// Ranks that share 12 sequences.
LaunchOptions options(Way way, int ranks, int fewest) {
  LaunchOptions p{.words = {"train"}, .choice = {way, ranks, ""}, .machine = {}, .restarts = 1, .fewest_ranks = fewest};
  p.machine.gpus = {"a", "b", "c", "d", "e", "f"};
  p.on_ranks = [](std::vector<std::string> words, const std::string& run, int n) -> std::optional<std::vector<std::string>> {
    if (12 % n != 0) return {};
    words.push_back(run + " on " + std::to_string(n));
    return words;
  };
  return p;
}

TEST(FewerRanks, AreTheMostThatCanShareAStep) {
  const auto six = without(options(Way::mpi, 6, 1), 2, "runs/a");
  ASSERT_TRUE(six);
  EXPECT_EQ(six->choice.ranks, 4) << "5 do not divide 12";
  EXPECT_EQ(six->words, (std::vector<std::string>{"train", "runs/a on 4"}));
  EXPECT_EQ(six->machine.gpus.size(), 6u);
  EXPECT_EQ(without(options(Way::mpi, 2, 1), 1, "runs/a")->choice.ranks, 1);
}

TEST(FewerRanks, AreNoneBelowTheFewestOrBeforeThereIsARun) {
  EXPECT_FALSE(without(options(Way::mpi, 6, 5), 2, "runs/a"));
  EXPECT_FALSE(without(options(Way::mpi, 1, 1), 0, "runs/a"));
  EXPECT_FALSE(without(options(Way::mpi, 6, 1), 2, ""));
  LaunchOptions fixed = options(Way::mpi, 6, 0);
  fixed.on_ranks = {};
  EXPECT_FALSE(without(fixed, 2, "runs/a"));
}

TEST(FewerRanks, OnGpusLeaveOutTheOneThatIsGone) {
  const auto spare = without(options(Way::gpus, 4, 1), 1, "runs/a");
  ASSERT_TRUE(spare);
  EXPECT_EQ(spare->machine.gpus, (std::vector<std::string>{"a", "c", "d", "e", "f"}));
  EXPECT_EQ(spare->choice.ranks, 4) << "a GPU was spare";
  const auto all = without(options(Way::gpus, 6, 2), 5, "runs/a");
  ASSERT_TRUE(all);
  EXPECT_EQ(all->machine.gpus.back(), "e");
  EXPECT_EQ(all->choice.ranks, 4);
}

}  // namespace
}  // namespace octet::launch
