#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>

#include "octet/base/error.hpp"
#include "tests/testing/launcher.hpp"

// `octet launch` as its user meets it: what it starts, what is shown, how it ends.

namespace octet {
namespace {
namespace fs = std::filesystem;
using namespace std::chrono_literals;
using testing::BegunOctet, testing::bytes_of, testing::count, testing::Ended, testing::has, testing::has_mpi, testing::Launch;

const std::string sums = "bench allreduce --bytes 4K --quality-ranks 2 --repeat 2 --sample-ms 0.05";
const std::string long_sums = "bench allreduce --bytes 4K --quality-ranks 2 --repeat 10000 --sample-ms 100";

class LaunchMpi : public Launch {
 protected:
  bool rank_has_begun() const {
    for (const auto& entry : fs::directory_iterator(scratch.folder()))
      if (fs::exists(entry.path() / "run-begun")) return true;
    return false;
  }
  void wait_for(BegunOctet& launcher, const std::string& file, const char* text) const {
    while (launcher.running() && !has(bytes_of(scratch.at(file)), text)) std::this_thread::sleep_for(2ms);
  }
  /// The folders in shared memory that its mpirun was given.
  static std::vector<std::string> folders_of_memory(BegunOctet& launcher) {
    std::istringstream words(bytes_of("/proc/" + std::to_string(mpirun_of(launcher)) + "/cmdline"));
    std::vector<std::string> out;
    for (std::string word; std::getline(words, word, '\0');)
      if (word.starts_with("/dev/shm/") && fs::exists(word)) out.push_back(word);
    return out;
  }
  /// The only child of the launcher.
  static pid_t mpirun_of(BegunOctet& launcher) {
    const std::string self = std::to_string(launcher.process());
    return pid_t(std::atoi(bytes_of("/proc/" + self + "/task/" + self + "/children").c_str()));
  }
  void SetUp() override {
    Launch::SetUp();
    if (!has_mpi()) GTEST_SKIP() << "MPI is not installed";
  }
};

TEST_F(LaunchMpi, RanksAreProcessesAndOnlyTheFirstSpeaks) {
  const Ended ended = octet("launch --ranks 3 --rank-logs logs -- " + sums);
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(ended.err, "octet launch: 3 ranks on CPUs, processes over MPI\n");
  EXPECT_TRUE(has(ended.out, "3 ranks, processes over MPI")) << ended.out;
  EXPECT_EQ(count(ended.out, "signal-to-noise"), 1u) << ended.out;
  for (const char* log : {"logs/rank-1.log", "logs/rank-2.log"}) EXPECT_TRUE(fs::exists(scratch.at(log))) << log;
  EXPECT_FALSE(fs::exists(scratch.at("logs/rank-0.log")));
  EXPECT_TRUE(left_nothing());
}

TEST_F(Launch, WithoutMpiRanksAreThreadsAndTheFirstLineSaysSo) {
  ::setenv("OCTET_MPI_MODULE", "/nowhere/liboctet_mpi.so", 1);
  const Ended ended = octet("launch --ranks 3 " + sums);
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_TRUE(ended.err.starts_with("octet launch: 3 ranks on CPUs, threads of one process: liboctet_mpi.so is not found\n")) << ended.err;
  EXPECT_TRUE(has(ended.out, "3 ranks, threads of one process")) << ended.out;
  EXPECT_EQ(octet("launch --ranks 3 " + sums + " --ranks 2").code, int(ExitCode::usage)) << "two numbers of ranks";
}

// Ranks over MPI need memory for the parts of others; a plan names the ways in which ranks may run here.
TEST_F(LaunchMpi, APlanHasTheMemoryOfProcessesAndOfThreads) {
  const std::string plan =
      "plan --set device=cpu --set model.size=llama-tiny --set train.batch=1 --set data.sequence_length=64 --set ranks.data=2";
  const std::string over_mpi = " over MPI", in_threads = " in threads of one process", per_rank = " MiB per rank at the peak";
  const auto mib_before = [](const std::string& text, const std::string& part) {
    const std::size_t end = text.find(part);
    return end == text.npos ? 0 : std::stod(text.substr(text.rfind(' ', end - 1) + 1));
  };
  const Ended both = octet(plan);
  ASSERT_EQ(both.code, 0) << both.err;
  const double threads = mib_before(both.out, " MiB" + in_threads), processes = mib_before(both.out, per_rank + over_mpi);
  EXPECT_GT(threads, 0) << both.out;
  EXPECT_GT(processes, threads) << both.out;
  ::setenv("OCTET_THREAD_RANKS", "2", 1);
  const Ended asked = octet(plan);
  ::unsetenv("OCTET_THREAD_RANKS");
  ::setenv("OCTET_MPI_MODULE", "/nowhere/liboctet_mpi.so", 1);
  const Ended without_mpi = octet(plan);
  for (const Ended* e : {&asked, &without_mpi}) {
    EXPECT_EQ(mib_before(e->out, per_rank + in_threads), threads) << e->out << e->err;
    EXPECT_FALSE(has(e->out, "over MPI")) << e->out;
  }
}

// The local addresses, in hexadecimal, on which a process listens.
std::vector<std::string> listens_on(pid_t process) {
  std::string sockets;
  std::error_code none;
  const std::string folder = "/proc/" + std::to_string(process);
  for (fs::directory_iterator at(folder + "/fd", none), end; !none && at != end; at.increment(none)) {
    std::error_code closed;
    sockets += fs::read_symlink(at->path(), closed).string() + "\n";
  }
  std::vector<std::string> out;
  for (const char* table : {"/net/tcp", "/net/tcp6"}) {
    std::istringstream lines(bytes_of(folder + table));
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::vector<std::string> row;
      for (std::string word; words >> word;) row.push_back(word);
      if (row.size() > 9 && row[3] == "0A" && has(sockets, "socket:[" + row[9] + "]")) out.push_back(row[1].substr(0, row[1].find(':')));
    }
  }
  return out;
}

TEST_F(LaunchMpi, RanksListenNowhereAndMpirunOnLoopbackAlone) {
  testing::write_dataset(scratch);
  scratch.write("run.toml", testing::tiny_config("steps = 100000\nbatch = 2\n"));
  BegunOctet launcher("launch --ranks 2 train run.toml --quiet", scratch.folder(), scratch.at("err"));
  const pid_t ranks[] = {rank_process(launcher, 0), rank_process(launcher, 1)};
  ASSERT_GT(ranks[0] * ranks[1], 0);
  while (launcher.running() && !rank_has_begun()) std::this_thread::sleep_for(5ms);
  for (const pid_t rank : ranks) EXPECT_TRUE(listens_on(rank).empty()) << listens_on(rank)[0];
  for (const std::string& address : listens_on(mpirun_of(launcher)))
    EXPECT_TRUE(address == "0100007F" || address == "00000000000000000000000001000000") << address << " is not loopback";
  launcher.signal(SIGTERM);
  launcher.end();
}

TEST_F(LaunchMpi, AnErrorOfRanksIsShownAndIsTheExitCode) {
  const Ended ended = octet("launch --ranks 2 --restarts 3 bench allreduce --bytes 3");
  EXPECT_EQ(ended.code, int(ExitCode::usage));
  EXPECT_TRUE(has(ended.err, " ended with exit code 2")) << ended.err;
  EXPECT_EQ(count(ended.err, "octet: --bytes 3: a tensor has a multiple of 4 bytes"), 1u) << ended.err;
  EXPECT_FALSE(has(ended.err, "restart")) << "another start would end alike\n" << ended.err;
  EXPECT_EQ(ended.out, "");
}

TEST_F(LaunchMpi, AKilledRankEndsTheOthersAndStartsAgainWhileRestartsAreLeft) {
  BegunOctet launcher("launch --ranks 3 --restarts 1 " + long_sums, scratch.folder(), scratch.at("err"));
  const pid_t victim = rank_process(launcher, 2);
  ASSERT_GT(victim, 0) << bytes_of(scratch.at("err"));
  ::kill(victim, SIGKILL);
  wait_for(launcher, "err", "starting again; 0 restarts are left after this");
  const pid_t again = rank_process(launcher, 2, victim);
  ASSERT_GT(again, 0) << bytes_of(scratch.at("err"));
  ::kill(again, SIGKILL);
  EXPECT_EQ(launcher.end(), 128 + SIGKILL);
  const std::string err = bytes_of(scratch.at("err"));
  EXPECT_EQ(count(err, "octet launch: rank 2 was killed by signal 9 (SIGKILL)"), 2u) << err;
  EXPECT_TRUE(has(err, "no restart is left")) << err;
  EXPECT_TRUE(left_nothing());
}

TEST_F(LaunchMpi, AKilledMpirunIsNamedAndStartsAgain) {
  BegunOctet launcher("launch --ranks 2 --restarts 1 " + long_sums, scratch.folder(), scratch.at("err"));
  pid_t rank = 0;
  for (int start = 0; start < 2; ++start) {
    rank = rank_process(launcher, 1, rank);
    ASSERT_GT(rank, 0) << bytes_of(scratch.at("err"));
    ASSERT_EQ(::kill(mpirun_of(launcher), SIGKILL), 0);
    if (start == 0) wait_for(launcher, "err", "starting again; 0 restarts are left after this");
  }
  EXPECT_EQ(launcher.end(), 128 + SIGKILL);
  const std::string err = bytes_of(scratch.at("err"));
  EXPECT_EQ(count(err, "mpirun was killed by signal 9 (SIGKILL), and the ranks with it"), 2u) << err;
  EXPECT_FALSE(has(err, "have not started")) << err;
}

// A process that stops as soon as it begins: MPI_Init of the other waits for it.
TEST_F(LaunchMpi, ARankThatStopsWhileMpiStartsIsLost) {
  testing::write_dataset(scratch);
  scratch.write("run.toml", testing::tiny_config("steps = 400\nbatch = 2\n[ranks]\nlimit_seconds = 2\n"));
  BegunOctet launcher("launch --ranks 2 --grace 1 train run.toml --quiet", scratch.folder(), scratch.at("err"));
  const pid_t rank = rank_process(launcher, 1);
  ASSERT_GT(rank, 0);
  ::kill(rank, SIGSTOP);
  EXPECT_EQ(launcher.end(), int(ExitCode::ranks)) << bytes_of(scratch.at("err"));
}

TEST_F(LaunchMpi, SignalsReachEveryRank) {
  BegunOctet launcher("launch --ranks 2 " + long_sums, scratch.folder());
  const pid_t first = rank_process(launcher, 0), second = rank_process(launcher, 1);
  ASSERT_GT(first * second, 0);
  launcher.signal(SIGTERM);
  EXPECT_EQ(launcher.end(), 128 + SIGTERM);
  EXPECT_NE(::kill(first, 0), 0);
  EXPECT_NE(::kill(second, 0), 0);
}

TEST_F(LaunchMpi, RanksDoNotOutliveTheLauncher) {
  BegunOctet launcher("launch --ranks 2 " + long_sums, scratch.folder());
  const pid_t first = rank_process(launcher, 0), second = rank_process(launcher, 1);
  ASSERT_GT(first * second, 0);
  const std::vector<std::string> memory = folders_of_memory(launcher);
  EXPECT_EQ(memory.size(), 1u);
  launcher.signal(SIGKILL);
  launcher.end();
  const auto start = std::chrono::steady_clock::now();
  while (::kill(first, 0) == 0 || ::kill(second, 0) == 0) {
    ASSERT_LT(std::chrono::steady_clock::now() - start, 20s);
    std::this_thread::sleep_for(5ms);
  }
  EXPECT_FALSE(left_nothing());
  EXPECT_EQ(octet("launch --ranks 2 " + sums).code, 0);
  EXPECT_TRUE(left_nothing()) << "the next launcher removes the files of the killed one";
  for (const std::string& folder : memory) EXPECT_FALSE(fs::exists(folder)) << folder;
}

TEST_F(Launch, RefusesWhatItCannotStart) {
  const auto expect = [&](const std::string& line, std::initializer_list<const char*> says) {
    const Ended ended = octet(line);
    EXPECT_EQ(ended.code, int(ExitCode::usage)) << line << "\n" << ended.err;
    for (const char* part : says) EXPECT_TRUE(has(ended.err, part)) << line << "\nlacks \"" << part << "\" in\n" << ended.err;
  };
  expect("launch", {"starts a subcommand", "octet launch --help"});
  expect("launch --", {"starts a subcommand"});
  expect("launch --rnks 2 train", {"no option `--rnks`"});
  expect("launch --ranks 2 tokenize --input x", {"launch tokenize", "train"});
  expect("launch --ranks 2 bench gemm", {"step, scaling, allreduce"});
  expect("launch --ranks -1 train", {"--ranks", "from 0 to 1024"});
  expect("launch --device cpu train run.toml", {"--device cpu", "--ranks"});
  expect("launch --ranks 4 --min-ranks 2 train run.toml", {"--min-ranks 2 is for restarts", "--restarts"});
  expect("launch --ranks 4 --restarts 1 --min-ranks 5 train run.toml", {"--min-ranks 5: 4 ranks are started"});
  expect("launch --ranks 4 --restarts 1 --min-ranks 2 bench allreduce", {"--min-ranks 2: only octet train"});
  ::setenv("RANK", "0", 1), ::setenv("WORLD_SIZE", "2", 1), ::setenv("MASTER_ADDR", "h", 1), ::setenv("MASTER_PORT", "9", 1);
  expect("launch --ranks 2 train run.toml", {"torchrun has started 2 processes", "leave out octet launch"});
  for (const char* name : {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}) ::unsetenv(name);
}

}  // namespace
}  // namespace octet
