#include "octet/launch/supervisor.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "octet/base/clock.hpp"

// Shell scripts in place of the processes around ranks, one each, as on GPUs. $1 is the launcher's folder, $2 the rank.

namespace octet::launch {
namespace {

// A rank whose process lives until a signal.
const std::string waits =
    "sleep 20 > /dev/null 2>&1 & p=$!; printf $p > \"$1/rank-$2.process\"; wait $p; s=$(($? - 128)); "
    "printf '0 %d 9e9\\n' $s > \"$1/new-$2\"; mv \"$1/new-$2\" \"$1/rank-$2.end\"; until [ -e \"$1/released\" ]; do sleep 0.01; done";
// The same, deaf to SIGTERM.
const std::string is_deaf = "trap '' TERM; " + waits;
// A rank that ends with an exit code.
std::string ends(int code) {
  return "printf $$ > \"$1/rank-$2.process\"; printf '" + std::to_string(code) +
         " 0 1\\nits error\\n' > \"$1/new-$2\"; mv \"$1/new-$2\" \"$1/rank-$2.end\"; "
         "[ " +
         std::to_string(code) + " = 0 ] || until [ -e \"$1/released\" ]; do sleep 0.01; done";
}

Ended supervised(const std::vector<std::string>& ranks, double grace_seconds = 5) {
  const TemporaryFolder folder;
  std::vector<Start> starts;
  for (std::size_t r = 0; r < ranks.size(); ++r)
    starts.push_back({.program = "/bin/sh", .words = {"-c", ranks[r], "rank", folder.path(), std::to_string(r)}, .own_group = true});
  return Supervisor(RankFolder(folder.path()), int(ranks.size()), grace_seconds).run(starts);
}

TEST(Supervisor, ReturnsWhenAllAreDone) {
  const Ended e = supervised({ends(0), ends(0), ends(0)});
  EXPECT_EQ(e.ranks.size(), 3u);
  EXPECT_EQ(e.silent, 0);
  EXPECT_FALSE(e.stopped);
  EXPECT_FALSE(cause(e.ranks).has_value());
}

TEST(Supervisor, AFailureEndsTheOthersAndIsTheCause) {
  const double start = monotonic_seconds();
  const Ended e = supervised({waits, ends(64), waits});
  ASSERT_EQ(e.ranks.size(), 3u);
  EXPECT_EQ(e.ranks[0].signal, SIGTERM);
  EXPECT_EQ(e.ranks[2].signal, SIGTERM);
  EXPECT_EQ(cause(e.ranks)->status(), 64);
  EXPECT_EQ(cause(e.ranks)->tail, "its error\n");
  EXPECT_LT(monotonic_seconds() - start, 4) << "before the grace time";
}

TEST(Supervisor, ARankThatIsDeafIsKilledAfterTheGraceTime) {
  const Ended e = supervised({is_deaf, ends(2)}, 0.3);
  ASSERT_EQ(e.ranks.size(), 2u);
  EXPECT_EQ(e.ranks[0].signal, SIGKILL);
  EXPECT_EQ(cause(e.ranks)->status(), 2);
}

TEST(Supervisor, ARankThatNeverStartsIsSilent) {
  const Ended e = supervised({"exit 9", waits}, 0.3);
  EXPECT_EQ(e.silent, 1);
  EXPECT_EQ(e.starter_status, 9);
  EXPECT_EQ(e.ranks.size(), 1u);
}

// Sends this process a signal after 0.3 s.
std::jthread signal_soon(int number) {
  return std::jthread([number] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    ::kill(::getpid(), number);
  });
}

TEST(Supervisor, AfterASignalRanksThatHaveNotMetAreKilledAfterTheGraceTime) {
  const std::jthread other = signal_soon(SIGTERM);
  const Ended e = supervised({is_deaf, is_deaf}, 0.3);
  EXPECT_TRUE(e.stopped);
  ASSERT_EQ(e.ranks.size(), 2u);
  for (const RankEnd& end : e.ranks) EXPECT_EQ(end.signal, SIGKILL);
}

TEST(Supervisor, AfterASignalRanksThatHaveMetMaySaveForLonger) {
  const std::string saves =
      "touch \"$1/run-begun\"; trap '' TERM; sleep 1.5; printf $$ > \"$1/rank-$2.process\"; printf '75 0 1\\n' > \"$1/new-$2\"; "
      "mv \"$1/new-$2\" \"$1/rank-$2.end\"";
  const std::jthread other = signal_soon(SIGTERM);
  const Ended e = supervised({saves, saves}, 0.3);
  ASSERT_EQ(e.ranks.size(), 2u);
  for (const RankEnd& end : e.ranks) EXPECT_EQ(end.status(), 75);
}

TEST(Supervisor, ARemovedFolderEndsRanksWhoseProcessesAreKnown) {
  const double start = monotonic_seconds();
  const std::string removes = "printf r > \"$1/run\"; sleep 0.5; rm -r \"$1\"";
  const Ended e = supervised({"sleep 20 > /dev/null 2>&1 & p=$!; printf $p > \"$1/rank-$2.process\"; wait $p", removes}, 5);
  EXPECT_TRUE(e.folder_lost);
  EXPECT_EQ(e.run, "r");
  EXPECT_EQ(e.started, 1);
  EXPECT_EQ(e.silent, 2);
  EXPECT_LT(monotonic_seconds() - start, 4) << "they heed SIGTERM";
}

TEST(Supervisor, PassesSignalsOnAndSaysThatItWasStopped) {
  const std::jthread other = signal_soon(SIGUSR1);
  const Ended e = supervised({waits, waits});
  EXPECT_TRUE(e.stopped);
  ASSERT_EQ(e.ranks.size(), 2u);
  for (const RankEnd& end : e.ranks) EXPECT_EQ(end.signal, SIGUSR1);
}

}  // namespace
}  // namespace octet::launch
