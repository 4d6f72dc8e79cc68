#include "octet/comm/rendezvous/launched_rank.hpp"

#include <gtest/gtest.h>

#include <map>

#include "octet/base/error.hpp"

namespace octet::comm {
namespace {

using Environment = std::map<std::string, std::string>;

LaunchedRank place(const Environment& e) {
  return launched_rank_among([&](const char* name) -> std::optional<std::string> {
    const auto it = e.find(name);
    return it == e.end() ? std::nullopt : std::optional(it->second);
  });
}

std::string refusal(const Environment& e) {
  try {
    place(e);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

Environment with(Environment e, const Environment& more) {
  for (const auto& [name, value] : more) e[name] = value;
  return e;
}

const Environment torch{
    {"RANK", "5"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "4"}, {"MASTER_ADDR", "node7"}, {"MASTER_PORT", "29500"}};
const Environment mpi{
    {"OMPI_COMM_WORLD_RANK", "2"}, {"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "0"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}};
const Environment slurm{{"SLURM_STEP_ID", "0"},        {"SLURM_PROCID", "3"},      {"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_LOCALID", "1"},
                        {"SLURM_STEP_NUM_NODES", "2"}, {"SLURM_JOB_ID", "123456"}, {"MASTER_ADDR", "node1"}};

TEST(LaunchedRank, OneProcessWithoutALauncher) {
  for (const Environment& e : {Environment{}, Environment{{"OCTET_PORT", "5"}}, Environment{{"RANK", ""}, {"WORLD_SIZE", ""}}}) {
    const LaunchedRank p = place(e);
    EXPECT_EQ(p.launcher, Launcher::none);
    EXPECT_EQ(p.rank, 0);
    EXPECT_EQ(p.size, 1);
    EXPECT_EQ(p.port, 0);
  }
}

TEST(LaunchedRank, IsReadFromEachLauncher) {
  const LaunchedRank t = place(torch), m = place(mpi), s = place(slurm);
  EXPECT_EQ(t.launcher, Launcher::torchrun);
  EXPECT_EQ(t.rank, 5);
  EXPECT_EQ(t.size, 8);
  EXPECT_EQ(t.local_rank, 1);
  EXPECT_EQ(t.local_size, 4);
  EXPECT_EQ(t.host, "node7");
  EXPECT_EQ(t.port, 29500);
  EXPECT_EQ(m.launcher, Launcher::mpirun);
  EXPECT_EQ(m.rank, 2);
  EXPECT_EQ(m.size, 4);
  EXPECT_EQ(m.local_size, 2);
  EXPECT_EQ(s.launcher, Launcher::srun);
  EXPECT_EQ(s.rank, 3);
  EXPECT_EQ(s.size, 4);
  EXPECT_EQ(s.host, "node1");
  EXPECT_EQ(s.port, 20000 + 123456 % 20000);
}

TEST(LaunchedRank, LeavesThePortOfTorchrunsAgentAlone) {
  EXPECT_EQ(place(with(torch, {{"TORCHELASTIC_USE_AGENT_STORE", "True"}})).port, 29501);
  EXPECT_EQ(place(with(torch, {{"TORCHELASTIC_USE_AGENT_STORE", "True"}, {"MASTER_PORT", "65535"}})).port, 65534);
  EXPECT_EQ(place(with(torch, {{"TORCHELASTIC_USE_AGENT_STORE", "False"}})).port, 29500);
  EXPECT_EQ(place(with(torch, {{"TORCHELASTIC_USE_AGENT_STORE", "True"}, {"OCTET_PORT", "4000"}})).port, 4000);
}

TEST(LaunchedRank, AJobScriptOutsideOfAStepIsOneProcess) {
  EXPECT_EQ(place({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}, {"SLURM_JOB_ID", "1"}}).size, 1);
}

TEST(LaunchedRank, SrunsVariablesYieldToThoseOfALauncherThatItStarted) {
  EXPECT_EQ(place(with(slurm, torch)).rank, 5);
  EXPECT_EQ(place(with(slurm, mpi)).rank, 2);
}

TEST(LaunchedRank, RefusalsNameTheVariable) {
  EXPECT_NE(refusal({{"RANK", "0"}}).find("WORLD_SIZE"), std::string::npos);
  EXPECT_NE(refusal({{"WORLD_SIZE", "2"}}).find("RANK"), std::string::npos);
  for (const char* bad : {"-1", "8", "x", "1x", " 1", "99999999999999999999"})
    EXPECT_NE(refusal(with(torch, {{"RANK", bad}})).find("RANK="), std::string::npos) << bad;
  EXPECT_NE(refusal(with(torch, {{"LOCAL_RANK", "4"}})).find("LOCAL_RANK=4"), std::string::npos);
  EXPECT_NE(refusal(with(torch, {{"MASTER_PORT", "70000"}})).find("MASTER_PORT"), std::string::npos);
  EXPECT_NE(refusal(with(torch, {{"MASTER_ADDR", ""}})).find("MASTER_ADDR"), std::string::npos);
  EXPECT_NE(refusal(with(torch, mpi)).find("contradicts"), std::string::npos);
  EXPECT_NE(refusal(with(slurm, {{"MASTER_ADDR", ""}})).find("scontrol"), std::string::npos);
  EXPECT_EQ(refusal(with(slurm, {{"MASTER_ADDR", ""}, {"SLURM_STEP_NUM_NODES", "1"}})), "");
}

const Environment task{{"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", "1"},         {"SLURM_STEP_NUM_TASKS", "2"},
                       {"SLURM_LOCALID", "1"}, {"SLURM_STEP_NUM_NODES", "1"}, {"SLURM_JOB_ID", "7"}};

TEST(LaunchedRank, ARankThatAJobScriptExportedContradictsTheTaskOfSrun) {
  const Environment exported = with(task, {{"WORLD_SIZE", "2"}, {"MASTER_ADDR", "node1"}, {"MASTER_PORT", "29500"}});
  EXPECT_NE(refusal(with(exported, {{"RANK", "0"}})).find("SLURM_PROCID=1"), std::string::npos);
  EXPECT_EQ(refusal(with(exported, {{"RANK", "1"}})), "");
  EXPECT_EQ(place(with(exported, {{"RANK", "0"}, {"TORCHELASTIC_RUN_ID", "none"}})).rank, 0) << "torchrun numbers the hosts itself";
  EXPECT_EQ(place(with(exported, {{"RANK", "3"}, {"WORLD_SIZE", "8"}})).size, 8) << "each task has started several ranks";
  EXPECT_NE(refusal(with(exported, {{"RANK", "0"}, {"WORLD_SIZE", "1"}})).find("WORLD_SIZE=1"), std::string::npos);
}

TEST(LaunchedRank, RanksOfPmixAndLocalRanksThatContradictAreRefused) {
  EXPECT_EQ(place(with(task, {{"PMIX_RANK", "1"}})).rank, 1);
  EXPECT_NE(refusal(with(task, {{"PMIX_RANK", "0"}})).find("PMIX_RANK=0"), std::string::npos);
  EXPECT_NE(refusal(with(mpi, {{"PMIX_RANK", "3"}})).find("OMPI_COMM_WORLD_RANK=2"), std::string::npos);
  const Environment both = with(mpi, {{"RANK", "2"}, {"WORLD_SIZE", "4"}, {"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "2"}});
  EXPECT_NE(refusal(both).find("OMPI_COMM_WORLD_LOCAL_RANK=0"), std::string::npos);
}

TEST(LaunchedRank, KnowsTheTasksOfItsHostUnderSrun) {
  const auto on = [&](const char* list, const char* node) {
    return place(with(slurm, {{"SLURM_STEP_TASKS_PER_NODE", list}, {"SLURM_NODEID", node}})).local_size;
  };
  EXPECT_EQ(on("2(x2)", "1"), 2);
  EXPECT_EQ(on("4,2", "1"), 2);
  EXPECT_EQ(on("3(x12),4(x2)", "13"), 4);
  for (const char* bad : {"1", "2(x2", "2(x", "x", "2(x0)", ""})
    EXPECT_EQ(refusal(with(slurm, {{"SLURM_STEP_TASKS_PER_NODE", bad}, {"SLURM_NODEID", "0"}})).empty(), std::string(bad).empty()) << bad;
}

TEST(LaunchedRank, ThreadsAreRanksOnlyOfOneProcess) {
  const auto ranks = [](const Environment& e) {
    return thread_ranks_among([&](const char* name) -> std::optional<std::string> {
      const auto it = e.find(name);
      return it == e.end() ? std::nullopt : std::optional(it->second);
    });
  };
  EXPECT_EQ(ranks({}), 0);
  EXPECT_EQ(ranks({{"OCTET_THREAD_RANKS", "4"}}), 4);
  EXPECT_EQ(ranks({{"OCTET_THREAD_RANKS", "4"}, {"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}}), 4);
  EXPECT_THROW(ranks({{"OCTET_THREAD_RANKS", "0"}}), ConfigError);
  EXPECT_THROW(ranks(with(mpi, {{"OCTET_THREAD_RANKS", "4"}})), ConfigError);
}

TEST(LaunchedRank, MpiUnderSrunNeedsPmix) {
  const auto error = [](const Environment& e) -> std::string {
    try {
      require_mpi_start(place(e), [&](const char* name) -> std::optional<std::string> {
        return e.contains(name) ? std::optional(e.at(name)) : std::nullopt;
      });
    } catch (const ConfigError& refused) {
      return refused.what();
    }
    return "";
  };
  EXPECT_NE(error(task).find("--mpi=pmix"), std::string::npos);
  EXPECT_EQ(error(with(task, {{"PMIX_RANK", "1"}})), "");
  EXPECT_EQ(error(mpi), "");
  EXPECT_EQ(error({}), "");
}

TEST(LaunchedRank, EqualVariablesOfTwoLaunchersAreNoContradiction) {
  EXPECT_EQ(place(with(mpi, {{"RANK", "2"}, {"WORLD_SIZE", "4"}})).launcher, Launcher::mpirun);
}

}  // namespace
}  // namespace octet::comm
