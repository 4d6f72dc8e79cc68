#include "octet/launch/way.hpp"

#include <gtest/gtest.h>

#include "octet/base/error.hpp"

namespace octet::launch {
namespace {

const Machine gpus{.gpus = {"0", "1", "2", "3"}, .no_gpu = "", .mpirun = "/usr/bin/mpirun", .mpi_module = "m.so"};
const Machine cpus{.gpus = {}, .no_gpu = "none", .mpirun = "/usr/bin/mpirun", .mpi_module = "m.so"};

TEST(Way, OneProcessPerGpu) {
  EXPECT_EQ(choose(0, Devices::automatic, gpus).ranks, 4);
  EXPECT_EQ(choose(2, Devices::automatic, gpus).way, Way::gpus);
  EXPECT_EQ(choose(1, Devices::gpu, gpus).way, Way::gpus);
  EXPECT_THROW(choose(5, Devices::automatic, gpus), ConfigError);
  EXPECT_THROW(choose(2, Devices::gpu, cpus), DeviceError);
}

TEST(Way, OnCpusProcessesOverMpi) {
  EXPECT_EQ(choose(3, Devices::automatic, cpus).way, Way::mpi);
  EXPECT_EQ(choose(8, Devices::cpu, gpus).way, Way::mpi) << "more ranks than GPUs";
  EXPECT_THROW(choose(0, Devices::automatic, cpus), ConfigError);
  EXPECT_THROW(choose(0, Devices::cpu, gpus), ConfigError);
}

TEST(Way, ThreadsWhereMpiIsMissingAndTheReason) {
  Machine m = cpus;
  m.mpi_module = "";
  EXPECT_EQ(choose(2, Devices::cpu, m).way, Way::threads);
  EXPECT_EQ(choose(2, Devices::cpu, m).words, "2 ranks on CPUs, threads of one process: liboctet_mpi.so is not found");
  m.mpirun = "";
  EXPECT_EQ(choose(2, Devices::cpu, m).words, "2 ranks on CPUs, threads of one process: mpirun is not installed");
  EXPECT_EQ(choose(1, Devices::cpu, cpus).way, Way::threads) << "one rank needs no MPI";
  EXPECT_EQ(choose(1, Devices::cpu, cpus).words, "1 rank on CPUs");
}

}  // namespace
}  // namespace octet::launch
