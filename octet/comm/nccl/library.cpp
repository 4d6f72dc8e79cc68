#if defined(OCTET_HAS_CUDA) && __has_include(<nccl.h>)

#include "octet/comm/nccl/library.hpp"

#include <cstdlib>
#include <memory>

#include "octet/tensor/cuda/device.hpp"

namespace octet::comm {

const Nccl& nccl() {
  static const Nccl* const it = [] {
    setenv("NCCL_NVLS_ENABLE", "0", 0);
    setenv("NCCL_LAUNCH_ORDER_IMPLICIT", "1", 0);
    void* const library = cuda::open_library("libnccl.so.2");
    auto n = std::make_unique<Nccl>();
    const auto find = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(cuda::function_in(library, name));
    };
    find(n->make_id, "ncclGetUniqueId"), find(n->init, "ncclCommInitRankConfig"), find(n->split, "ncclCommSplit");
    find(n->destroy, "ncclCommDestroy"), find(n->abort, "ncclCommAbort"), find(n->state, "ncclCommGetAsyncError");
    find(n->rank, "ncclCommUserRank"), find(n->size, "ncclCommCount");
    find(n->text, "ncclGetErrorString"), find(n->last_error, "ncclGetLastError");
    find(n->all_reduce, "ncclAllReduce"), find(n->reduce_scatter, "ncclReduceScatter"), find(n->all_gather, "ncclAllGather");
    find(n->broadcast, "ncclBroadcast"), find(n->send, "ncclSend"), find(n->receive, "ncclRecv");
    find(n->begin_group, "ncclGroupStart"), find(n->end_group, "ncclGroupEnd");
    return n.release();
  }();
  return *it;
}

}  // namespace octet::comm

#endif
