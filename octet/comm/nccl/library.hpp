#pragma once

// NCCL's functions, found when first used. Only for sources of this folder, where NCCL's header is known to exist.

#include <nccl.h>

namespace octet::comm {

struct Nccl {
  decltype(&ncclGetUniqueId) make_id;
  decltype(&ncclCommInitRankConfig) init;
  decltype(&ncclCommSplit) split;
  decltype(&ncclCommDestroy) destroy;
  decltype(&ncclCommAbort) abort;
  decltype(&ncclCommGetAsyncError) state;
  decltype(&ncclCommUserRank) rank;
  decltype(&ncclCommCount) size;
  decltype(&ncclGetErrorString) text;
  decltype(&ncclGetLastError) last_error;
  decltype(&ncclAllReduce) all_reduce;
  decltype(&ncclReduceScatter) reduce_scatter;
  decltype(&ncclAllGather) all_gather;
  decltype(&ncclBroadcast) broadcast;
  decltype(&ncclSend) send;
  decltype(&ncclRecv) receive;
  decltype(&ncclGroupStart) begin_group;
  decltype(&ncclGroupEnd) end_group;
};

/// Opens libnccl.so.2 on the first call. Throws DeviceError when it is missing or too old.
const Nccl& nccl();

}  // namespace octet::comm
