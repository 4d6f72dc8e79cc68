#include "octet/launch/rank_end.hpp"

#include <gtest/gtest.h>

#include <csignal>

#include "octet/base/error.hpp"

namespace octet::launch {
namespace {

RankEnd exited(int rank, int code, double seconds) { return {.rank = rank, .code = code, .seconds = seconds}; }
RankEnd killed(int rank, int signal, double seconds) { return {.rank = rank, .signal = signal, .seconds = seconds}; }

int status_of(std::vector<RankEnd> ends) {
  const auto c = cause(std::move(ends));
  return c ? c->status() : 0;
}

TEST(RankEnd, TheFirstFailureInTimeIsTheCause) {
  EXPECT_EQ(status_of({exited(0, 2, 1.5), exited(1, 64, 1.0), exited(2, 0, 0.5)}), 64);
  EXPECT_EQ(status_of({exited(0, 76, 2), killed(2, SIGKILL, 1), killed(1, SIGTERM, 3)}), 128 + SIGKILL);
  EXPECT_EQ(cause({exited(0, 76, 2), killed(2, SIGKILL, 1)})->rank, 2);
}

TEST(RankEnd, ALostPeerRanksBelowARealCause) {
  EXPECT_EQ(status_of({exited(0, 76, 1), exited(1, 64, 2)}), 64);
  EXPECT_EQ(status_of({exited(0, 76, 1), killed(1, SIGSEGV, 2)}), 128 + SIGSEGV);
  EXPECT_EQ(status_of({exited(0, 76, 1), exited(2, 76, 1.5), killed(1, SIGKILL, 2)}), 76) << "the launcher killed it";
}

TEST(RankEnd, OrderlyEndsAreNoFailures) {
  EXPECT_EQ(status_of({exited(0, 0, 1), exited(1, 0, 2)}), 0);
  EXPECT_EQ(status_of({exited(1, 75, 1), exited(0, 75, 2)}), 75);
  EXPECT_EQ(status_of({exited(1, 75, 1), exited(0, 70, 2)}), 70);
  EXPECT_EQ(status_of({}), 0);
  for (const int code : {0, 3, 75}) EXPECT_FALSE(exited(0, code, 0).failed()) << code;
  for (const int code : {1, 2, 64, 69, 70, 74, 76, 90}) EXPECT_TRUE(exited(0, code, 0).failed()) << code;
}

TEST(RankEnd, OnlyLostPeersAndSignalsAreWorthAnotherStart) {
  EXPECT_TRUE(may_succeed_again(exited(0, 76, 0)));
  EXPECT_TRUE(may_succeed_again(killed(0, SIGKILL, 0)));
  for (const int code : {2, 64, 69, 70, 74, 90}) EXPECT_FALSE(may_succeed_again(exited(0, code, 0))) << code;
}

TEST(RankEnd, IsTheSameAfterItsFile) {
  RankEnd e = exited(3, 64, 12.5);
  e.tail = "a warning\noctet: no\n\n";
  const RankEnd back = rank_end_of(3, to_file(e));
  EXPECT_EQ(back.code, 64);
  EXPECT_EQ(back.signal, 0);
  EXPECT_EQ(back.seconds, 12.5);
  EXPECT_EQ(back.tail, e.tail);
  EXPECT_THROW(rank_end_of(3, ""), DataError);
}

TEST(RankEnd, TheSentenceNamesRankReasonAndLastLine) {
  RankEnd e = exited(3, 64, 0);
  e.tail = "a warning\noctet: no\n\n";
  EXPECT_EQ(sentence(e), "rank 3 ended with exit code 64: octet: no");
  EXPECT_EQ(sentence(e, "another line\noctet: no\n"), "rank 3 ended with exit code 64") << "rank 0 has shown it";
  EXPECT_EQ(sentence(e, "octet: no, not yet\n"), "rank 3 ended with exit code 64: octet: no");
  EXPECT_EQ(sentence(killed(2, SIGKILL, 0)), "rank 2 was killed by signal 9 (SIGKILL)");
}

}  // namespace
}  // namespace octet::launch
