#pragma once

#include "octet/launch/launch.hpp"
#include "octet/launch/process.hpp"

namespace octet::launch {

/// The processes that together run the ranks of these options: one per GPU, mpirun, or one process with threads.
/// `folder`: of RankFolder. `port`: for the ranks' rendezvous on this host. `memory`: folder for the memory that ranks of MPI share, "":
/// where MPI has it.
std::vector<Start> commands(const LaunchOptions&, const std::string& folder, int port, const std::string& memory = "");

/// The ranks that tell their ends: one for threads of one process.
int told_ranks(const Choice&);

/// A free port of the loopback interface. Throws IoError.
int free_port();

}  // namespace octet::launch
