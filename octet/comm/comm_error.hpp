#pragma once

#include "octet/base/error.hpp"
#include "octet/comm/collective.hpp"

namespace octet::comm {

/// Ranks could not work together: one is lost, late, or called something else. The communicator cannot be used afterwards.
struct CommError : Error {
  Collective collective;
  int rank, peer;            // the rank that reports, and the one that is to blame; -1: unknown
  std::int64_t step;         // Communicator::set_step(); -1: before the first
  bool others_tell = false;  // another rank that is still there reports the same

  CommError(const Call&, int rank, int size, std::int64_t step, int peer, const std::string& what);
};

}  // namespace octet::comm
