#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "octet/base/error.hpp"
#include "octet/base/text.hpp"
#include "octet/json/value.hpp"
#include "octet/numerics/philox.hpp"
#include "tests/testing/octet.hpp"
#include "tests/testing/rank_processes.hpp"
#include "tests/testing/run_events.hpp"

// Ranks over MPI of which one is killed or stopped: the others end in time, say so once, and what is left resumes bit for bit.
// OCTET_RANK_KILLS=200 makes a campaign of it.

namespace octet {
namespace {
namespace fs = std::filesystem;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using testing::BegunOctet, testing::bytes_of, testing::Ended, testing::has, testing::RankProcesses, testing::Scratch;

constexpr int four = 4;
constexpr double limit = 2, slack = 20;  // seconds; machines that test may be busy

std::size_t times(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != text.npos; at += part.size()) ++n;
  return n;
}

class LostRank : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::string(OCTET_MPIRUN).empty()) GTEST_SKIP() << "MPI was not installed when this was built";
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "ranks wait 2 s for each other, which instrumented code exceeds";
#endif
    testing::write_dataset(scratch);
    scratch.write("run.toml", "threads = 1\n" + testing::tiny_config("steps = 60\nbatch = 1\naccumulate = 2\neval_every = 20\n"
                                                                     "[recipe]\nname = \"current\"\n[checkpoint]\nevery = 3\n"
                                                                     "[ranks]\nzero = 1\nlimit_seconds = 2\n"));
  }
  // `mesh`: keys of a run that begins.
  std::string command(const std::string& mesh = "") const {
    if (fs::exists(scratch.at("runs/cut/config.toml"))) return "train --quiet --resume runs/cut";
    fs::remove_all(scratch.at("runs/cut"));
    return "train run.toml --quiet --name cut" + mesh;
  }
  std::size_t steps_done() const { return times(bytes_of(scratch.at("runs/cut/metrics.jsonl")), "\"event\":\"step\""); }
  std::string errors() const { return bytes_of(scratch.at("err")); }
  // The steps of complete checkpoints, rising.
  std::vector<std::string> checkpoints() const {
    std::vector<std::string> out;
    std::error_code none;
    for (fs::directory_iterator at(scratch.at("runs/cut/checkpoints"), none), end; !none && at != end; at.increment(none))
      if (const std::string name = at->path().filename().string(); name.starts_with("step-")) out.push_back(name);
    std::sort(out.begin(), out.end());
    return out;
  }
  void wait_for_steps(BegunOctet& program, std::size_t steps) const {
    while (program.running() && steps_done() < steps) std::this_thread::sleep_for(1ms);
  }
  // Whether mpirun and all its ranks end within the limit. A stopped rank is killed once it is the only one.
  bool ends_in_time(RankProcesses& run) const {
    const auto end = Clock::now() + std::chrono::duration<double>(limit + slack);
    while (run.mpirun().running() && Clock::now() < end) {
      const std::map<int, pid_t> left = run.processes();
      if (left.size() == 1 && RankProcesses::is_stopped(left.begin()->second)) ::kill(left.begin()->second, SIGKILL);
      std::this_thread::sleep_for(10ms);
    }
    return !run.mpirun().running();
  }

  void expect_named_once(const std::string& mesh);
  void campaign(const std::string& mesh, int ranks, std::int64_t wanted);

  Scratch scratch;
};

void LostRank::expect_named_once(const std::string& mesh) {
  RankProcesses run(four, command(mesh) + " --steps 100000", scratch.folder(), scratch.at("err"), true);
  wait_for_steps(run.mpirun(), 10);
  while (run.mpirun().running() && checkpoints().empty()) std::this_thread::sleep_for(1ms);
  ASSERT_EQ(run.processes().size(), std::size_t(four)) << errors();
  const auto begin = Clock::now();
  ::kill(run.processes().at(2), SIGKILL);
  ASSERT_TRUE(ends_in_time(run)) << errors();
  EXPECT_GE(std::chrono::duration<double>(Clock::now() - begin).count(), limit / 2);
  EXPECT_TRUE(has(errors(), "octet: rank 0 of 4, step ") && has(errors(), ": rank 2 on ") && has(errors(), " has not come within 2 s"))
      << errors();
  EXPECT_EQ(times(errors(), "octet: "), 1u) << errors();
  for (const int r : {0, 1, 3}) {
    const std::string text = bytes_of(scratch.at(format("runs/cut/collectives-{}.json", r)));
    EXPECT_TRUE(has(text, format("\"rank\": {}", r)) && has(text, "\"seconds\": null")) << text;
    EXPECT_EQ(times(text, "\"collective\""), 64u);
  }
  EXPECT_FALSE(fs::exists(scratch.at("runs/cut/collectives-2.json")));
  ASSERT_FALSE(checkpoints().empty());
  const Ended inspected = testing::run_octet("inspect runs/cut/checkpoints/" + checkpoints().back(), scratch.folder());
  EXPECT_EQ(inspected.code, 0) << inspected.err;
}

TEST_F(LostRank, ThatIsKilledIsNamedOnceAndTheLastCollectivesAreWritten) { expect_named_once(""); }

// The others wait in calls of both axes: one for the lost rank, one for a rank that waits for it, one for either.
TEST_F(LostRank, OfAMeshIsNamedOnceByItsNumberAmongAllRanks) { expect_named_once(" --set ranks.tensor=2 --set ranks.data=2"); }

// Borders on their way to the lost rank.
TEST_F(LostRank, OfStagesIsNamedOnceWhileBordersAreOnTheirWay) {
  expect_named_once(" --set ranks.pipeline=4 --set model.layers=4 --set train.accumulate=8 --set comm.pipeline=e4m3");
}

TEST_F(LostRank, ThatIsStoppedEndsAllWithTheCodeOfLostRanks) {
  RankProcesses run(four, command() + " --steps 100000", scratch.folder(), scratch.at("err"));
  wait_for_steps(run.mpirun(), 10);
  ASSERT_EQ(run.processes().size(), std::size_t(four)) << errors();
  ::kill(run.processes().at(0), SIGSTOP);
  ASSERT_TRUE(ends_in_time(run)) << errors();
  EXPECT_EQ(run.mpirun().end(), int(ExitCode::ranks)) << errors();
  EXPECT_TRUE(has(errors(), "octet: rank 1 of 4, step ") && has(errors(), ": rank 0 on ")) << errors();
}

// Kills ranks at random moments until so many were: no checkpoint is lost, and the run ends as if nothing had happened.
void LostRank::campaign(const std::string& mesh, int ranks, std::int64_t wanted) {
  const Ended whole = testing::run_octet("train run.toml --quiet --name whole" + mesh, scratch.folder());
  ASSERT_EQ(whole.code, 0) << whole.err;
  const auto expect_same = [&] {
    EXPECT_TRUE(bytes_of(scratch.at("runs/whole/weights/model.safetensors")) == bytes_of(scratch.at("runs/cut/weights/model.safetensors")));
    EXPECT_EQ(testing::untimed_events(scratch.at("runs/whole")), testing::untimed_events(scratch.at("runs/cut")));
  };
  std::int64_t signals = 0, whole_runs = 0;
  for (std::uint64_t attempt = 0; signals < wanted; ++attempt) {
    ASSERT_LT(attempt, std::uint64_t(10 * wanted + 10)) << signals << " signals";
    const RandomWords r = philox(19, attempt);
    const int number = std::array{SIGKILL, SIGSTOP, SIGTERM}[r.w[0] % 3];
    const bool recovery = number == SIGKILL && r.w[1] % 2 == 0;
    RankProcesses run(ranks, command(mesh), scratch.folder(), scratch.at("err"), recovery);
    wait_for_steps(run.mpirun(), steps_done() + 1);
    std::this_thread::sleep_for(std::chrono::milliseconds(r.w[2] % 300));
    const std::vector<std::string> before = checkpoints();
    const std::map<int, pid_t> all = run.processes();
    const bool sent = all.size() == std::size_t(ranks);
    if (sent) ::kill(all.at(int(r.w[3] % std::uint32_t(ranks))), number), ++signals;
    ASSERT_TRUE(ends_in_time(run)) << "attempt " << attempt << ", signal " << number << ": " << errors();
    const std::vector<std::string> after = checkpoints();
    ASSERT_TRUE(before.empty() || (!after.empty() && after.back() >= before.back())) << "attempt " << attempt << " lost " << before.back();
    if (!has(bytes_of(scratch.at("runs/cut/metrics.jsonl")), "\"event\":\"end\"") || run.mpirun().end() != 0 || recovery) continue;
    expect_same();
    if (HasFailure()) return;
    ++whole_runs;
    fs::remove_all(scratch.at("runs/cut"));
  }
  // On a machine with other work, ranks of a whole run may come later than lost ones are waited for.
  RankProcesses last(ranks, command(mesh) + " --set ranks.limit_seconds=60", scratch.folder(), scratch.at("err"));
  ASSERT_EQ(last.mpirun().end(), 0) << errors();
  expect_same();
  RecordProperty("whole_runs", int(whole_runs));
}

std::int64_t kills(std::int64_t usual) {
  const char* const text = std::getenv("OCTET_RANK_KILLS");
  return text == nullptr ? usual : std::strtoll(text, nullptr, 10);
}

TEST_F(LostRank, AtRandomMomentsLosesNoCheckpointAndTheRunEndsAsIfNothingHadHappened) { campaign(" --set ranks.data=4", four, kills(2)); }

// Two stages of two tensor groups of two ranks: the lost rank is missing in all three axes.
TEST_F(LostRank, OfAMeshOfThreeAxesLosesNoCheckpointEither) {
  campaign(" --set ranks.tensor=2 --set ranks.data=2 --set ranks.pipeline=2 --set model.layers=2", 2 * four, kills(2));
}

// Parts of sequences with data ranks, and with parts of layers.
TEST_F(LostRank, OfAMeshThatDividesSequencesLosesNoCheckpointEither) {
  campaign(" --set ranks.context=2 --set ranks.data=2", four, kills(1));
}

TEST_F(LostRank, OfAMeshThatDividesSequencesAndLayersLosesNoCheckpointEither) {
  if (kills(0) == 0) GTEST_SKIP() << "OCTET_RANK_KILLS is not set";
  campaign(" --set ranks.tensor=2 --set ranks.context=2", four, kills(0));
}

}  // namespace
}  // namespace octet
