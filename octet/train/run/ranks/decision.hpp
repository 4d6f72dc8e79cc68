#pragma once

#include "octet/comm/communicator.hpp"
#include "octet/health/policy.hpp"

namespace octet::train {

/// The decision of recovery after a step.
struct Decision {
  health::Orders orders;
  health::Request request;
};

/// The decision of rank 0, which alone has the record. All ranks call it, once per step and once per answer to a request: one collective,
/// and two more for the names of layers.
Decision decision_of_first(Stream&, comm::Communicator&, const Decision& own);

}  // namespace octet::train
