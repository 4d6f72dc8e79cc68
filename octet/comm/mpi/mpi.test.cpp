#include "octet/comm/mpi/mpi.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <thread>

#include "octet/base/clock.hpp"
#include "octet/comm/conformance.testing.hpp"

// The tests of suite MpiRank are run by every process that mpirun starts from the tests of suite Mpi.

namespace octet::comm {
namespace {

bool started_by_mpirun() { return getenv("OMPI_COMM_WORLD_SIZE") != nullptr; }

struct Ended {
  int code = -1;
  std::string output;
};

// `copies`: how a process of this machine gets the bytes of another, by Open MPI's names.
Ended mpirun(int ranks, const std::string& test, const std::string& copies = "cma") {
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string command =
      "timeout 60 mpirun --allow-run-as-root --oversubscribe --bind-to none --mca btl self,vader,tcp"
      " --mca mpi_yield_when_idle 1 --mca btl_vader_single_copy_mechanism " +
      copies + " -n " + std::to_string(ranks) + " '" + program + "' --gtest_brief=1 --gtest_filter=" + test + " 2>&1";
  Ended out;
  FILE* const pipe = popen(command.c_str(), "r");
  char buffer[4096];
  while (const std::size_t n = fread(buffer, 1, sizeof buffer, pipe)) out.output.append(buffer, n);
  out.code = WEXITSTATUS(pclose(pipe));
  return out;
}

class Mpi : public ::testing::Test {
 protected:
  void SetUp() override {
    if (started_by_mpirun()) GTEST_SKIP() << "run by mpirun itself";
    if (mpi_module_path().empty()) GTEST_SKIP() << "MPI was not installed when this was built";
  }
};
class MpiRank : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!started_by_mpirun()) GTEST_SKIP() << "run by mpirun, from the tests of suite Mpi";
  }
};

TEST_F(MpiRank, Collectives) {
  const auto c = connect_mpi(20);
  testing::expect_collectives(*c);
  if (!HasFailure()) std::printf("[rank %d passed]\n", c->rank());
}

// 17 MiB per rank: more than one piece of a type of bytes.
TEST_F(MpiRank, LargeTensors) {
  const auto c = connect_mpi(20);
  Stream s(Device::cpu);
  const std::int64_t n = 17 << 20;
  const Tensor own = s.empty({n + 1}, DType::u8), all = s.empty({c->size() * (n + 1)}, DType::u8);
  for (std::int64_t i = 0; i <= n; ++i) own.u8()[i] = std::uint8_t(i * 7 + c->rank() + i / 1000);
  c->all_gather(s, own, all);
  std::int64_t different = 0;
  for (int r = 0; r < c->size(); ++r)
    for (std::int64_t i = 0; i <= n; ++i) different += all.u8()[r * (n + 1) + i] != std::uint8_t(i * 7 + r + i / 1000);
  EXPECT_EQ(different, 0);
}

TEST_F(MpiRank, ARankIsLate) {
  const auto c = connect_mpi(0.5);
  Stream s(Device::cpu);
  c->barrier(s);
  c->set_step(3);
  if (c->rank() == 1) std::this_thread::sleep_for(std::chrono::seconds(3));
  const Tensor x = s.zeros({5}, DType::f32);
  const double start = monotonic_seconds();
  try {
    c->all_reduce(s, x, Reduction::sum);
    if (c->rank() != 1) ADD_FAILURE() << "rank 1 was late";
  } catch (const CommError& e) {
    const std::string what = e.what();
    EXPECT_NE(what.find("step 3: all_reduce (sum) of f32 [5]: rank 1 on "), what.npos) << what;
    EXPECT_NE(what.find(" has not come within 0.5 s"), what.npos) << what;
    EXPECT_EQ(e.peer, 1);
    EXPECT_EQ(e.others_tell, c->rank() == 2) << "rank 0 reports";
    EXPECT_LT(monotonic_seconds() - start, 2.5);
    std::printf("rank %d gave up\n", c->rank());
    std::fflush(stdout);
    EXPECT_THROW(c->barrier(s), CommError);
  }
}

// Where no process reads another's memory, MPI moves large tensors only in calls of both ranks.
TEST_F(MpiRank, ABegunSend) {
  Stream s(Device::cpu);
  const auto c = connect_mpi(20);
  const Tensor x = s.empty({8 << 20}, DType::u8);
  for (std::int64_t i = 0; i < x.count(); ++i) x.u8()[i] = std::uint8_t(c->rank() == 0 ? i * 7 + i / 1000 : 0);
  c->barrier(s);
  if (c->rank() == 0) {
    const BegunSend begun = c->begin_send(s, x, 1);
    std::this_thread::sleep_for(std::chrono::seconds(1));  // without a call
    c->finish_send(begun);
    EXPECT_EQ(c->last_calls().calls().back().sent_bytes, 0);
    return;
  }
  const double start = monotonic_seconds();
  c->receive(s, x, 0);
  EXPECT_LT(monotonic_seconds() - start, 0.8);
  std::int64_t different = 0;
  for (std::int64_t i = 0; i < x.count(); ++i) different += x.u8()[i] != std::uint8_t(i * 7 + i / 1000);
  EXPECT_EQ(different, 0);
  std::printf("received\n");
}

TEST_F(MpiRank, ABegunSendIsNotReceived) {
  const auto c = connect_mpi(0.5);
  Stream s(Device::cpu);
  const Tensor x = s.zeros({8 << 20}, DType::u8);
  c->barrier(s);
  if (c->rank() == 1) return std::this_thread::sleep_for(std::chrono::seconds(1)), std::_Exit(0);
  const BegunSend begun = c->begin_send(s, x, 1);
  try {
    c->finish_send(begun);
    ADD_FAILURE() << "rank 1 does not receive";
  } catch (const CommError& e) {
    const std::string what = e.what();
    EXPECT_NE(what.find("send of u8 [8388608] to rank 1: rank 1 on "), what.npos) << what;
    EXPECT_NE(what.find(" has not come within 0.5 s"), what.npos) << what;
    EXPECT_EQ(e.peer, 1);
    EXPECT_TRUE(std::isnan(c->last_calls().calls().back().end)) << "the log has the call that did not end";
    std::printf("rank %d gave up\n", c->rank());
  }
}

// No rank receives. Rank 1 ends by another error, and its send under way does not hold that up.
TEST_F(MpiRank, AWithdrawnSend) {
  Stream s(Device::cpu);
  const Tensor x = s.zeros({8 << 20}, DType::u8);
  auto c = connect_mpi(5);
  const int rank = c->rank();
  c->barrier(s);
  c->withdraw_sends();
  c->barrier(s);  // nothing was withdrawn
  if (rank == 1) {
    try {
      const auto ends = std::move(c);
      ends->begin_send(s, x, 0);
      throw IoError("another error");
    } catch (const IoError&) {
    }
  } else {
    const BegunSend begun = c->begin_send(s, x, 1);
    c->withdraw_sends();
    EXPECT_THROW(c->finish_send(begun), CommError);
    EXPECT_THROW(c->barrier(s), CommError);
  }
  std::printf("rank %d ended\n", rank);
  std::fflush(stdout);
  std::this_thread::sleep_for(std::chrono::milliseconds(500));  // mpirun ends the other rank with this one
  std::_Exit(HasFailure());                                     // MPI is not finalized
}

TEST_F(Mpi, GivesTheBitsOfPlainLoops) {
  for (const int ranks : {1, 3}) {
    const Ended e = mpirun(ranks, "MpiRank.Collectives");
    EXPECT_EQ(e.code, 0) << e.output;
    for (int r = 0; r < ranks; ++r) EXPECT_NE(e.output.find("[rank " + std::to_string(r) + " passed]"), e.output.npos) << e.output;
  }
}

TEST_F(Mpi, MovesMoreThanOnePieceOfBytes) {
  const Ended e = mpirun(2, "MpiRank.LargeTensors");
  EXPECT_EQ(e.code, 0) << e.output;
}

TEST_F(Mpi, ALateRankEndsTheOthersWithinTheLimit) {
  const Ended e = mpirun(3, "MpiRank.ARankIsLate");
  EXPECT_NE(e.output.find("rank 0 gave up"), e.output.npos) << e.output;
  EXPECT_NE(e.output.find("rank 2 gave up"), e.output.npos) << e.output;
  EXPECT_EQ(e.output.find("Failure"), e.output.npos) << e.output;
}

TEST_F(Mpi, ABegunSendArrivesWhileItsRankMakesNoCalls) {
  const Ended e = mpirun(2, "MpiRank.ABegunSend", "none");
  EXPECT_EQ(e.code, 0) << e.output;
  EXPECT_NE(e.output.find("received"), e.output.npos) << e.output;
}

TEST_F(Mpi, ABegunSendThatIsNotReceivedEndsWithinTheLimit) {
  const Ended e = mpirun(2, "MpiRank.ABegunSendIsNotReceived");
  EXPECT_NE(e.output.find("rank 0 gave up"), e.output.npos) << e.output;
  EXPECT_EQ(e.output.find("Failure"), e.output.npos) << e.output;
}

TEST_F(Mpi, CallsNothingAfterASendIsWithdrawn) {
  const Ended e = mpirun(2, "MpiRank.AWithdrawnSend");
  EXPECT_NE(e.output.find("rank 0 ended"), e.output.npos) << e.output;
  EXPECT_NE(e.output.find("rank 1 ended"), e.output.npos) << e.output;
  EXPECT_EQ(e.output.find("Failure"), e.output.npos) << e.output;
}

TEST_F(MpiRank, Starts) { connect_mpi(1); }

// Its second program is none that starts MPI.
TEST_F(Mpi, ARankThatNeverStartsMpiEndsTheOthersWithinTheLimit) {
  const double start = monotonic_seconds();
  const Ended e = mpirun(1, "MpiRank.Starts : -n 1 sleep 30");
  EXPECT_EQ(e.code, int(ExitCode::ranks)) << e.output;
  EXPECT_NE(e.output.find("octet: rank 0 of 2 on "), e.output.npos) << e.output;
  EXPECT_NE(e.output.find("MPI has not started on all ranks within 1 s"), e.output.npos) << e.output;
  EXPECT_LT(monotonic_seconds() - start, 20);
}

TEST_F(MpiRank, DividesAlone) {
  const auto c = connect_mpi(1);
  if (c->rank() == 1) return std::this_thread::sleep_for(std::chrono::seconds(30));
  c->split(0, 0);
}

TEST_F(Mpi, ARankThatDoesNotDivideItselfEndsTheOthersWithinTheLimit) {
  const double start = monotonic_seconds();
  const Ended e = mpirun(2, "MpiRank.DividesAlone");
  EXPECT_EQ(e.code, int(ExitCode::ranks)) << e.output;
  EXPECT_NE(e.output.find("rank 0 of 2: not all ranks have divided themselves within 1 s"), e.output.npos) << e.output;
  EXPECT_LT(monotonic_seconds() - start, 20);
}

TEST_F(Mpi, AMissingModuleIsAnError) {
  setenv("OCTET_MPI_MODULE", "/nowhere/liboctet_mpi.so", 1);
  EXPECT_EQ(mpi_module_path(), "");
  try {
    connect_mpi();
    ADD_FAILURE();
  } catch (const DeviceError& e) {
    EXPECT_NE(std::string(e.what()).find("libopenmpi-dev"), std::string::npos) << e.what();
  }
  unsetenv("OCTET_MPI_MODULE");
}

}  // namespace
}  // namespace octet::comm
