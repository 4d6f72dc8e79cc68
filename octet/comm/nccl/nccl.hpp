#pragma once

#include "octet/comm/communicator.hpp"
#include "octet/comm/rendezvous/heartbeats.hpp"

namespace octet::comm {

/// The id of a group of GPUs, which rank 0 makes and all ranks must have (comm/rendezvous/rendezvous.hpp).
/// Opens libnccl.so.2, with NVLink multicast off unless NCCL_NVLS_ENABLE is set. Throws DeviceError if this program was built without
/// NCCL's header or the library is missing. Kernels of several communicators begin in the host's order of calls, which is the same on every
/// rank, unless NCCL_LAUNCH_ORDER_IMPLICIT is set: otherwise two ranks could each fill their GPU with the half that the other awaits.
std::string make_nccl_id();

struct NcclOptions {
  double limit_seconds = 60;  // how long a rank waits for another
  bool peer_memory = true;    // large calls among GPUs of one machine go through their memory (comm/peer/), if all of them can
};

/// One GPU of each rank: the GPU of this process. All ranks call it, with the same id and options. Calls are queued in the stream; failures
/// of the library and of other ranks are found by finish(), barrier() and every other wait of this thread for the GPU
/// (tensor/cuda/waiter.hpp). They end the communicator, and those split off it, when a rank is lost or after `limit_seconds`. Sums are in
/// the library's order, or in that of ranks where they go through peer memory.
/// heartbeats: name a lost rank, at once if its process has ended; may be null. Throws DeviceError as make_nccl_id(), CommError if the
/// ranks do not come within the limit.
std::unique_ptr<Communicator> connect_nccl(int rank, int size, const std::string& id, const NcclOptions& = {},
                                           std::shared_ptr<Heartbeats> heartbeats = nullptr);

}  // namespace octet::comm
