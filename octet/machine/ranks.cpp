#include "octet/machine/ranks.hpp"

#include <cstdlib>

#include "octet/base/error.hpp"
#include "octet/base/host_name.hpp"
#include "octet/base/log.hpp"
#include "octet/comm/mpi/mpi.hpp"
#include "octet/comm/nccl/nccl.hpp"
#include "octet/comm/rendezvous/gpus.hpp"
#include "octet/comm/rendezvous/launched_rank.hpp"
#include "octet/comm/rendezvous/rendezvous.hpp"
#include "octet/comm/rendezvous/share_threads.hpp"
#include "octet/comm/self/self.hpp"
#include "octet/comm/threads/threads.hpp"
#include "octet/machine/machine.hpp"

namespace octet::machine {
namespace {

using comm::Communicator, comm::Launcher, comm::LaunchedRank;
using Work = std::function<void(Communicator&, const RankPlacement&)>;

void require_number(const RankWish& wish, std::int64_t started, std::string_view by) {
  if (wish.ranks == 0 || wish.ranks == started) return;
  throw ConfigError(format("{} ranks are wanted and {} has started {}: start as many, or leave the number out", wish.ranks, by, started));
}

// Only rank 0 speaks. Other ranks may have other files and devices, so an error of these names its rank.
void run_rank(Communicator& comm, const RankPlacement& placement, const Work& work) {
  const log::Silence silence(comm.rank() > 0);
  try {
    work(comm, placement);
  } catch (const Error& e) {
    if (comm.size() == 1 || (e.code() != ExitCode::data && e.code() != ExitCode::io && e.code() != ExitCode::device)) throw;
    throw Error(e.code(), format("rank {} of {} on {}: {}", comm.rank(), comm.size(), host_name(), e.what()));
  }
}

std::unique_ptr<Communicator> connect_gpus(const LaunchedRank& launched, const RankWish& wish) {
  const comm::Meeting meeting{.rank = launched.rank,
                              .size = launched.size,
                              .host = launched.host,
                              .port = launched.port,
                              .limit_seconds = wish.limit_seconds,
                              .token = launched.token};
  comm::Met met = comm::meet(meeting, "nccl", launched.rank == 0 ? comm::make_nccl_id() : "");
  auto heartbeats = std::make_shared<comm::Heartbeats>(launched.rank, std::move(met.connections));
  return comm::connect_nccl(launched.rank, launched.size, met.message, {wish.limit_seconds, wish.peer_memory}, std::move(heartbeats));
}

std::unique_ptr<Communicator> connect_cpus(const LaunchedRank& launched, const RankWish& wish) {
  if (launched.launcher == Launcher::torchrun)
    throw ConfigError(
        "torchrun has started ranks that compute on CPUs, which exchange tensors over MPI: start them with mpirun, or with "
        "octet launch");
  comm::share_threads(launched);
  auto comm = comm::connect_mpi(wish.limit_seconds);
  if (comm->size() != launched.size)
    throw ConfigError(
        format("{} has started {} ranks, but MPI finds {}: use the mpirun of the MPI that Octet was built with, or srun --mpi=pmix",
               comm::name(launched.launcher), launched.size, comm->size()));
  return comm;
}

void on_one(const Work& work) {
  comm::SelfCommunicator self;
  work(self, {});
}

void on_process(const LaunchedRank& launched, const RankWish& wish, const Work& work) {
  require_number(wish, launched.size, comm::name(launched.launcher));
  const std::string backend = started_backend(wish.device);
  if (backend.empty()) return on_one(work);
  RankPlacement placement{.here = launched.local_size, .backend = backend};
  if (backend == "mpi") return run_rank(*connect_cpus(launched, wish), placement, work);
  placement.device = Device::cuda;
  run_rank(*connect_gpus(launched, wish), placement, work);
}

void on_threads(int ranks, const RankWish& wish, const Work& work) {
  if (wish.device == "gpu" || (wish.device == "auto" && device_named("auto") == Device::cuda))
    throw ConfigError(
        format("{} ranks on GPUs are processes: start them with octet launch --ranks {}, or set device = \"cpu\"", ranks, ranks));
  comm::run_on_threads({.ranks = ranks, .limit_seconds = wish.limit_seconds}, [&](Communicator& comm) {
    run_rank(comm, {.here = ranks, .backend = "threads", .first_here = comm.rank() == 0}, work);
  });
}

}  // namespace

std::string backend_text(std::string_view backend) {
  return backend == "threads" ? "threads of one process" : backend == "mpi" ? "processes over MPI" : "GPUs over NCCL";
}

std::int64_t started_ranks() {
  const LaunchedRank launched = comm::launched_rank_from_environment();
  const std::int64_t threads = comm::thread_ranks_from_environment();
  return launched.launcher != Launcher::none && threads == 0 ? launched.size : threads;
}

std::int64_t number_of(const RankWish& wish) {
  const std::int64_t started = started_ranks();
  return started > 0 ? started : wish.ranks > 0 ? wish.ranks : wish.otherwise;
}

std::string started_backend(const std::string& device) {
  const std::int64_t started = started_ranks();
  if (started == 0) return "";
  if (comm::thread_ranks_from_environment() > 0) return "threads";
  if (device_named(device) == Device::cuda) return "nccl";
  return started > 1 ? "mpi" : "";  // one rank exchanges nothing
}

void choose_own_gpu() {
  const LaunchedRank launched = comm::launched_rank_from_environment();
  if (launched.launcher == Launcher::none) return;
  ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);  // a queue that waits for another rank holds up those of its channel
  std::string chosen = to_text(std::int64_t(launched.local_rank));
  if (comm::environment_variable(comm::gpus_variable)) {
    const std::vector<std::string> gpus = comm::visible_gpus(comm::environment_variable);
    if (gpus.size() <= 1) return;
    if (launched.local_rank >= int(gpus.size()))
      throw ConfigError(format("{} names {} GPUs, and none is left for local rank {}; start as many ranks as there are GPUs",
                               comm::gpus_variable, gpus.size(), launched.local_rank));
    chosen = gpus[std::size_t(launched.local_rank)];
  }
  ::setenv(comm::gpus_variable, chosen.c_str(), 1);
}

void on_ranks(const RankWish& wish, const Work& work) {
  const LaunchedRank launched = comm::launched_rank_from_environment();
  const std::int64_t threads = comm::thread_ranks_from_environment();
  if (launched.launcher != Launcher::none && threads == 0) return on_process(launched, wish, work);
  if (threads > 0) require_number(wish, threads, "OCTET_THREAD_RANKS");
  const std::int64_t ranks = number_of(wish);
  if (ranks > 1) return on_threads(int(ranks), wish, work);
  on_one(work);
}

}  // namespace octet::machine
