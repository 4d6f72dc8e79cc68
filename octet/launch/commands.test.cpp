#include "octet/launch/commands.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>

namespace octet::launch {
namespace {

using Words = std::vector<std::string>;

LaunchOptions options(Way way, int ranks) {
  LaunchOptions p{.words = {"train", "run.toml"}, .choice = {way, ranks, ""}, .machine = {}};
  p.machine.gpus = {"4", "GPU-5", "6"};
  p.machine.mpirun = "/usr/bin/mpirun";
  return p;
}

std::string variable(const Start& s, const std::string& name) {
  const auto it = std::find_if(s.variables.begin(), s.variables.end(), [&](const auto& v) { return v.first == name; });
  return it == s.variables.end() ? "(unset)" : it->second;
}

bool has(const Words& words, const Words& part) { return std::search(words.begin(), words.end(), part.begin(), part.end()) != words.end(); }

TEST(Commands, AProcessPerGpuWithTorchrunsVariables) {
  ::unsetenv("OMP_NUM_THREADS");
  LaunchOptions p = options(Way::gpus, 2);
  p.logs = "/logs";
  const std::vector<Start> starts = commands(p, "/folder", 29500);
  ASSERT_EQ(starts.size(), 2u);
  EXPECT_EQ(told_ranks(p.choice), 2);
  for (int rank = 0; rank < 2; ++rank) {
    const Start& s = starts[std::size_t(rank)];
    EXPECT_EQ(s.program, this_program);
    EXPECT_EQ(s.words, (Words{"launch", "train", "run.toml"}));
    for (const char* name : {"RANK", "LOCAL_RANK"}) EXPECT_EQ(variable(s, name), std::to_string(rank)) << name;
    for (const char* name : {"WORLD_SIZE", "LOCAL_WORLD_SIZE"}) EXPECT_EQ(variable(s, name), "2") << name;
    EXPECT_EQ(variable(s, "MASTER_ADDR"), "127.0.0.1");
    EXPECT_EQ(variable(s, "MASTER_PORT"), "29500");
    EXPECT_EQ(variable(s, "CUDA_VISIBLE_DEVICES"), rank == 0 ? "4" : "GPU-5");
    EXPECT_EQ(variable(s, "OCTET_LAUNCH_FOLDER"), "/folder");
    EXPECT_EQ(variable(s, "OCTET_TOKEN").size(), 32u);
    EXPECT_EQ(variable(s, "OCTET_TOKEN"), variable(starts[0], "OCTET_TOKEN"));
    EXPECT_NE(variable(s, "OCTET_TOKEN"), variable(commands(p, "/folder", 29500)[0], "OCTET_TOKEN")) << "of another start";
    EXPECT_EQ(variable(s, "OCTET_RANK_LOGS"), "/logs");
    EXPECT_GE(std::stoi(variable(s, "OMP_NUM_THREADS")), 1);
    EXPECT_EQ(s.removed, Words{"SLURM_STEP_ID"}) << "a step around the launcher is not that of its ranks";
    EXPECT_TRUE(s.own_group);
  }
}

TEST(Commands, MpirunOnOneHostWithMoreRanksThanProcessors) {
  const LaunchOptions p = options(Way::mpi, 5);
  const std::vector<Start> starts = commands(p, "/folder", 0);
  ASSERT_EQ(starts.size(), 1u);
  EXPECT_EQ(told_ranks(p.choice), 5);
  EXPECT_EQ(starts[0].program, "/usr/bin/mpirun");
  for (const Words& part : {Words{"--allow-run-as-root"}, Words{"--oversubscribe"}, Words{"--bind-to", "none"},
                            Words{"--mca", "mpi_yield_when_idle", "1"}, Words{"--mca", "btl", "self,vader"}, Words{"-n", "5"}})
    EXPECT_TRUE(has(starts[0].words, part)) << part.back();
  EXPECT_TRUE(has(commands(p, "/folder", 0, "/memory")[0].words, {"--mca", "btl_vader_backing_directory", "/memory"}));
  EXPECT_TRUE(has(starts[0].words, {"launch", "train", "run.toml"}));
  EXPECT_EQ(variable(starts[0], "CUDA_VISIBLE_DEVICES"), "") << "ranks on CPUs do not see the GPUs";
}

TEST(Commands, ThreadsKeepAllProcessors) {
  const LaunchOptions p = options(Way::threads, 3);
  const std::vector<Start> starts = commands(p, "/folder", 0);
  ASSERT_EQ(starts.size(), 1u);
  EXPECT_EQ(told_ranks(p.choice), 1);
  EXPECT_EQ(variable(starts[0], "OCTET_THREAD_RANKS"), "3");
  EXPECT_EQ(variable(starts[0], "OMP_NUM_THREADS"), "(unset)");
}

TEST(Commands, ANumberOfThreadsThatTheUserSetIsThatOfARank) {
  ::setenv("OMP_NUM_THREADS", "7", 1);
  EXPECT_EQ(variable(commands(options(Way::mpi, 2), "", 0)[0], "OMP_NUM_THREADS"), "(unset)") << "it is inherited";
  ::unsetenv("OMP_NUM_THREADS");
}

TEST(Commands, AResumedRunNamesItsFolderOnce) {
  EXPECT_EQ(resumed({"train", "a.toml", "--fp8"}, "runs/a"), (Words{"train", "a.toml", "--fp8", "--resume", "runs/a"}));
  EXPECT_EQ(resumed({"train", "--resume", "runs/old", "--quiet"}, "runs/a"), (Words{"train", "--quiet", "--resume", "runs/a"}));
  EXPECT_EQ(resumed({"train", "--resume", "--quiet"}, "runs/a"), (Words{"train", "--quiet", "--resume", "runs/a"}));
  EXPECT_EQ(resumed({"train", "--resume=runs/old"}, "runs/a"), (Words{"train", "--resume", "runs/a"}));
  EXPECT_EQ(resumed({"bench", "allreduce"}, "runs/a"), (Words{"bench", "allreduce"}));
}

}  // namespace
}  // namespace octet::launch
