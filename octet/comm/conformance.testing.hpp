#pragma once

#include <functional>

#include "octet/comm/communicator.hpp"

namespace octet::comm::testing {

/// Runs work once per rank.
using Ranks = std::function<void(int size, const std::function<void(Communicator&)>& work)>;

/// Every collective with every dtype that it takes, on streams of the CPU, compared with plain loops in the order of ranks: equal bits. The
/// same for all backends of the host's memory. EXPECTs, called by every rank.
void expect_collectives(Communicator&);

}  // namespace octet::comm::testing
