#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace octet::launch {

/// How ranks of one machine run.
enum class Way : std::uint8_t { gpus, mpi, threads };

/// The devices that a user wants.
enum class Devices : std::uint8_t { automatic, cpu, gpu };

/// The parts of a machine that decide.
struct Machine {
  std::vector<std::string> gpus;   // comm::visible_gpus()
  std::string no_gpu;              // the reason why Octet cannot use them; "": it can
  std::string mpirun, mpi_module;  // paths, "" for none
};
Machine this_machine();

struct Choice {
  Way way = Way::threads;
  int ranks = 1;
  std::string words;  // the number of ranks and the way, and why they are not processes
};

/// One process per GPU; on CPUs processes over MPI, or threads of one process where MPI is missing, and for one rank. `ranks` 0: one per
/// GPU. Throws ConfigError where there are fewer GPUs than ranks, or no GPU and no number of ranks; DeviceError where GPUs are wanted and
/// none works.
Choice choose(int ranks, Devices, const Machine&);

}  // namespace octet::launch
