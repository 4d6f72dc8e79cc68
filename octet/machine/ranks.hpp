#pragma once

#include <functional>
#include <optional>
#include <string>

#include "octet/comm/communicator.hpp"

namespace octet::machine {

/// The ranks that a program wants.
struct RankWish {
  std::int64_t ranks = 0;  // 0: as many as a launcher has started, or `otherwise`
  std::int64_t otherwise = 1;
  std::string device = "auto";  // auto | cpu | gpu, on which they compute
  double limit_seconds = 60;    // how long a rank waits for another
  bool peer_memory = true;      // of GPUs of one machine: large exchanges go through it
};

/// How they are there.
struct RankPlacement {
  int here = 1;                 // ranks on this machine
  std::string backend = {};     // "threads", "mpi", "nccl"; "" for one rank
  Device device = Device::cpu;  // whose memory the backend exchanges
  bool first_here = true;       // of this process, whose result is that of the process
};

/// "threads of one process", "processes over MPI" or "GPUs over NCCL".
std::string backend_text(std::string_view backend);

/// The number of ranks that a launcher has started or OCTET_THREAD_RANKS wants; 0: neither. Throws ConfigError as on_ranks().
std::int64_t started_ranks();

/// The number of ranks that on_ranks() gives this wish.
std::int64_t number_of(const RankWish&);

/// The backend of started ranks, as in RankPlacement, where they compute on `device`; "" where none were started, or one
/// on a CPU. Throws as started_ranks().
std::string started_backend(const std::string& device);

/// Of a process that a launcher has started on a machine with GPUs: it uses the one of its local rank, where CUDA_VISIBLE_DEVICES leaves it
/// several. Call it before anything asks for the GPU. Throws ConfigError as on_ranks().
void choose_own_gpu();

/// Runs work(communicator, place) on every rank that is part of this process, and returns when they are done:
///   one rank                                            here
///   a process of torchrun, mpirun or srun               its rank, over NCCL if it computes on a GPU, else over MPI if there are others
///   several on a CPU, or OCTET_THREAD_RANKS=n is set    each in a thread, over memory
/// Only rank 0 speaks: log lines and output of other ranks' threads are dropped. Throws ConfigError if another number of ranks was started
/// than wished, or several are wished on a GPU and none were started; DeviceError, IoError and CommError if they do not find each other;
/// and what `work` throws. With several ranks, errors of files and devices name rank and host.
void on_ranks(const RankWish&, const std::function<void(comm::Communicator&, const RankPlacement&)>& work);

/// The same with the result of work() on the first rank of this process.
template <class Work>
auto result_on_ranks(const RankWish& wish, const Work& work) {
  std::optional<std::invoke_result_t<const Work&, comm::Communicator&, const RankPlacement&>> out;
  on_ranks(wish, [&](comm::Communicator& ranks, const RankPlacement& placement) {
    auto own = work(ranks, placement);
    if (placement.first_here) out.emplace(std::move(own));
  });
  return *std::move(out);
}

}  // namespace octet::machine
