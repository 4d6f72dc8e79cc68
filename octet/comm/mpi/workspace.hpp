#pragma once

#include "octet/comm/collective.hpp"
#include "octet/tensor/stream.hpp"

namespace octet::comm {

/// Memory for the parts of all ranks, from the stream's scratch in the scope of the caller. Empty for calls without a reduction.
struct MpiWorkspace {
  std::int64_t share = 0;  // values that a rank adds
  bool few = false;        // each rank adds all of them
  Tensor parts, padded;    // of all ranks, their shares; all_reduce of many values: x with padding
};
MpiWorkspace mpi_workspace(Stream&, const Call&, int ranks);

}  // namespace octet::comm
