#pragma once

#include <functional>

#include "octet/comm/communicator.hpp"

namespace octet::comm {

/// Options of ranks that are threads.
struct ThreadRanks {
  int ranks = 1;
  double limit_seconds = 60;  // how long a rank waits for another
};

/// Runs work(communicator) once per rank, each rank in a thread of its own with its share of the processor's threads, and returns when all
/// are done. Each rank makes its own Stream. If one throws, the others end at their next collective, and the first error is thrown here.
/// Throws ConfigError unless there are 1 to 1024 ranks and the limit is above 0, DeviceError if the system refuses the threads.
void run_on_threads(const ThreadRanks&, const std::function<void(Communicator&)>& work);

}  // namespace octet::comm
