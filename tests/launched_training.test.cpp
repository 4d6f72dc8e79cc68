#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>

#include "octet/base/error.hpp"
#include "tests/testing/launcher.hpp"

// `octet launch ... train`: a run is resumed after a rank is lost, on fewer ranks where one does not come back, and is saved at a signal.

namespace octet {
namespace {
namespace fs = std::filesystem;
using namespace std::chrono_literals;
using testing::BegunOctet, testing::bytes_of, testing::count, testing::has, testing::has_mpi, testing::Launch;

class LaunchTraining : public Launch {
 protected:
  void SetUp() override {
    Launch::SetUp();
    testing::write_dataset(scratch);
    scratch.write("run.toml", "threads = 1\n" + testing::tiny_config("steps = 400\nbatch = 2\n[checkpoint]\nevery = 20\n"));
  }
  bool has_checkpoint(const std::string& run) const {
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(scratch.at("runs/" + run + "/checkpoints"), none))
      if (has(entry.path().filename().string(), "step-") && !has(entry.path().filename().string(), ".")) return true;
    return false;
  }
  std::string weights(const std::string& run) const { return bytes_of(scratch.at("runs/" + run + "/weights/model.safetensors")); }
};

TEST_F(LaunchTraining, AKilledRunIsResumedAndEndsAsIfItHadNotBeen) {
  ASSERT_EQ(octet("train run.toml --name whole --quiet").code, 0);
  BegunOctet launcher("launch --ranks 1 --restarts 2 train run.toml --name killed", scratch.folder(), scratch.at("err"));
  const pid_t rank = rank_process(launcher, 0);
  while (launcher.running() && !has_checkpoint("killed")) std::this_thread::sleep_for(1ms);
  ASSERT_EQ(::kill(rank, SIGKILL), 0) << bytes_of(scratch.at("err"));
  EXPECT_EQ(launcher.end(), 0);
  EXPECT_TRUE(has(bytes_of(scratch.at("err")), "starting again, resuming runs/killed; 1 restart is left after this"))
      << bytes_of(scratch.at("err"));
  EXPECT_FALSE(fs::exists(scratch.at("runs/killed-2")));
  EXPECT_TRUE(weights("killed") == weights("whole"));
}

class LaunchMpiTraining : public LaunchTraining {
 protected:
  void SetUp() override {
    LaunchTraining::SetUp();
    if (!has_mpi()) GTEST_SKIP() << "MPI is not installed";
  }
};

TEST_F(LaunchMpiTraining, ProcessesAndThreadsGiveOneResultAlsoAfterAKilledRank) {
  ASSERT_EQ(octet("launch --ranks 2 train run.toml --steps 120 --name processes --quiet").code, 0);
  BegunOctet launcher("launch --ranks 2 --restarts 1 --grace 1 train run.toml --steps 120 --name killed", scratch.folder(),
                      scratch.at("err"));
  const pid_t rank = rank_process(launcher, 1);
  while (launcher.running() && !has_checkpoint("killed")) std::this_thread::sleep_for(1ms);
  ASSERT_EQ(::kill(rank, SIGKILL), 0) << bytes_of(scratch.at("err"));
  EXPECT_EQ(launcher.end(), 0) << bytes_of(scratch.at("err"));
  EXPECT_TRUE(has(bytes_of(scratch.at("err")), "rank 1 was killed by signal 9 (SIGKILL)")) << bytes_of(scratch.at("err"));
  EXPECT_TRUE(weights("killed") == weights("processes"));
  ::setenv("OCTET_MPI_MODULE", "/nowhere/liboctet_mpi.so", 1);
  ASSERT_EQ(octet("launch --ranks 2 train run.toml --steps 120 --name threads --quiet").code, 0);
  EXPECT_TRUE(weights("threads") == weights("processes"));
}

class LaunchFewerRanks : public LaunchMpiTraining {
 protected:
  // The last of so many ranks is killed in two starts in a row, in the first one after a checkpoint.
  void lose_twice(BegunOctet& launcher, const std::string& run, int ranks) {
    pid_t victim = 0;
    for (int start = 0; start < 2; ++start) {
      victim = rank_process(launcher, ranks - 1, victim);
      while (launcher.running() && !has_checkpoint(run)) std::this_thread::sleep_for(1ms);
      ASSERT_EQ(::kill(victim, SIGKILL), 0) << bytes_of(scratch.at("err"));
    }
  }
};

// Rank 2 is killed whenever there are 3. 12 sequences of a step are 3 x 2 x 2, and then 2 x 2 x 3.
TEST_F(LaunchFewerRanks, LeaveOutARankThatDoesNotComeBack) {
  BegunOctet launcher(
      "launch --ranks 3 --restarts 3 --min-ranks 2 --grace 1 train run.toml --steps 40 --set train.accumulate=2 --set ranks.data=3 "
      "--set ranks.zero=1 --name fewer",
      scratch.folder(), scratch.at("err"));
  lose_twice(launcher, "fewer", 3);
  EXPECT_EQ(launcher.end(), 0) << bytes_of(scratch.at("err"));
  const std::string err = bytes_of(scratch.at("err"));
  EXPECT_EQ(count(err, "rank 2 was killed by signal 9 (SIGKILL)"), 2u) << err;
  EXPECT_EQ(count(err, "rank 2 was lost in two starts in a row and is left out: the run continues on 2 ranks"), 1u) << err;
  EXPECT_TRUE(has(err, "starting again, resuming runs/fewer; 1 restart is left after this")) << err;
  const std::string config = bytes_of(scratch.at("runs/fewer/config.toml"));
  EXPECT_TRUE(has(config, "\naccumulate = 3\n") && has(config, "[ranks]\ndata = 2\n")) << config;
  EXPECT_TRUE(has(bytes_of(scratch.at("runs/fewer/run.json")), "\"finished\""));
}

// 3 ranks are no groups of 2, so 12 sequences of a step are 4 x 1 x 3, and then 2 x 1 x 6.
TEST_F(LaunchFewerRanks, AreCompleteGroupsOfThoseThatDivideState) {
  BegunOctet launcher(
      "launch --ranks 4 --restarts 2 --min-ranks 2 --grace 1 train run.toml --steps 24 --set train.batch=1 --set train.accumulate=3 "
      "--set ranks.data=4 --set ranks.zero=1 --set ranks.shard=2 --name groups",
      scratch.folder(), scratch.at("err"));
  lose_twice(launcher, "groups", 4);
  EXPECT_EQ(launcher.end(), 0) << bytes_of(scratch.at("err"));
  const std::string err = bytes_of(scratch.at("err"));
  EXPECT_EQ(count(err, "rank 3 was lost in two starts in a row and is left out: the run continues on 2 ranks"), 1u) << err;
  const std::string config = bytes_of(scratch.at("runs/groups/config.toml"));
  EXPECT_TRUE(has(config, "\nbatch = 1\naccumulate = 6\n") && has(config, "[ranks]\ndata = 2\n")) << config;
}

// Of 2 ranks at least 2 are wanted, so all start again until no restart is left.
TEST_F(LaunchFewerRanks, AreNotFewerThanTheOptionSays) {
  BegunOctet launcher("launch --ranks 2 --restarts 1 --min-ranks 2 --grace 1 train run.toml --steps 400 --name all", scratch.folder(),
                      scratch.at("err"));
  lose_twice(launcher, "all", 2);
  EXPECT_EQ(launcher.end(), 128 + SIGKILL);
  const std::string err = bytes_of(scratch.at("err"));
  EXPECT_EQ(count(err, "starting again, resuming runs/all; 0 restarts are left after this"), 1u) << err;
  EXPECT_TRUE(has(err, "no restart is left") && !has(err, "left out")) << err;
}

TEST_F(LaunchMpiTraining, ARemovedFolderOfTheLauncherEndsInOrderAndStartsAgain) {
  BegunOctet launcher("launch --ranks 2 --restarts 1 train run.toml --steps 1200 --name swept", scratch.folder(), scratch.at("err"));
  while (launcher.running() && !has_checkpoint("swept")) std::this_thread::sleep_for(1ms);
  std::this_thread::sleep_for(200ms);  // by then the launcher knows the run
  for (const auto& entry : fs::directory_iterator(scratch.folder()))
    if (has(entry.path().string(), "octet-launch-")) fs::remove_all(entry.path());
  EXPECT_EQ(launcher.end(), 0) << bytes_of(scratch.at("err"));
  const std::string err = bytes_of(scratch.at("err"));
  EXPECT_TRUE(has(err, "was removed while the ranks ran") && has(err, "starting again, resuming runs/swept")) << err;
  EXPECT_TRUE(has(bytes_of(scratch.at("runs/swept/run.json")), "\"finished\""));
}

TEST_F(LaunchMpiTraining, ASignalSavesARunOfSeveralRanks) {
  BegunOctet launcher("launch --ranks 2 train run.toml --steps 100000 --name stopped", scratch.folder(), scratch.at("err"));
  while (launcher.running() && !has(bytes_of(scratch.at("runs/stopped/metrics.jsonl")), "\"event\":\"step\""))
    std::this_thread::sleep_for(1ms);
  launcher.signal(SIGTERM);
  EXPECT_EQ(launcher.end(), int(ExitCode::interrupted)) << bytes_of(scratch.at("err"));
  EXPECT_TRUE(has_checkpoint("stopped"));
}

TEST_F(LaunchTraining, AStoppedRunIsSavedAndNotStartedAgain) {
  BegunOctet launcher("launch --ranks 1 --restarts 2 train run.toml --steps 100000 --name stopped", scratch.folder(), scratch.at("err"));
  while (launcher.running() && !has(bytes_of(scratch.at("runs/stopped/metrics.jsonl")), "\"event\":\"step\""))
    std::this_thread::sleep_for(1ms);
  launcher.signal(SIGUSR1);
  EXPECT_EQ(launcher.end(), int(ExitCode::interrupted)) << bytes_of(scratch.at("err"));
  EXPECT_FALSE(has(bytes_of(scratch.at("err")), "again"));
  EXPECT_TRUE(has(bytes_of(scratch.at("runs/stopped/run.json")), "\"stopped\""));
}

}  // namespace
}  // namespace octet
