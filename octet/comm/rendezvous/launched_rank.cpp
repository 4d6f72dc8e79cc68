#include "octet/comm/rendezvous/launched_rank.hpp"

#include <charconv>
#include <cstdlib>

#include "octet/base/error.hpp"
#include "octet/base/text.hpp"

namespace octet::comm {
namespace {

constexpr int most_ranks = 1 << 20;

// The variables of one environment as numbers.
class Reader {
 public:
  explicit Reader(const Variables& get) : get_(get) {}

  std::optional<std::string> text(const char* name) const {
    const auto value = get_(name);
    return value && !value->empty() ? value : std::nullopt;
  }
  std::optional<int> number(const char* name, int least, int most) const {
    const auto value = text(name);
    if (!value) return {};
    int out = 0;
    const char* const end = value->data() + value->size();
    const auto [at, error] = std::from_chars(value->data(), end, out);
    if (error != std::errc() || at != end || out < least || out > most)
      throw ConfigError(format("{}={}: wants an integer from {} to {}", name, printable(*value), least, most));
    return out;
  }
  int required(const char* name, int least, int most, const char* because) const {
    const auto value = number(name, least, most);
    if (!value) throw ConfigError(format("{} is set, but {} is not: set both, or neither", because, name));
    return *value;
  }

 private:
  const Variables& get_;
};

// Names of one launcher's variables.
struct Names {
  const char *rank, *size, *local_rank, *local_size;
};
constexpr Names torchrun{"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"};
constexpr Names mpirun{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"};
constexpr Names srun{"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", nullptr};

std::optional<LaunchedRank> read_rank(const Reader& r, Launcher launcher, const Names& n) {
  if (!r.text(n.rank) && !r.text(n.size)) return {};
  LaunchedRank p{.launcher = launcher};
  p.size = r.required(n.size, 1, most_ranks, n.rank);
  p.rank = r.required(n.rank, 0, most_ranks, n.size);
  if (p.rank >= p.size) throw ConfigError(format("{}={} must be less than {}={}", n.rank, p.rank, n.size, p.size));
  const auto local_size = n.local_size == nullptr ? std::nullopt : r.number(n.local_size, 1, p.size);
  const auto local_rank = r.number(n.local_rank, 0, p.size - 1);
  p.local_rank = local_rank.value_or(0);
  p.local_size = local_size.value_or(p.local_rank + 1);
  if (p.local_rank >= p.local_size)
    throw ConfigError(format("{}={} must be less than {}={}", n.local_rank, p.local_rank, n.local_size, p.local_size));
  return p;
}

constexpr const char* remedy = "unset the variables of the launcher that did not start this process";

void compare(const Reader& r, const LaunchedRank& torch, const LaunchedRank& mpi) {
  if (torch.rank != mpi.rank || torch.size != mpi.size)
    throw ConfigError(format("RANK={} of WORLD_SIZE={} contradicts OMPI_COMM_WORLD_RANK={} of OMPI_COMM_WORLD_SIZE={}: {}", torch.rank,
                             torch.size, mpi.rank, mpi.size, remedy));
  if (r.text(torchrun.local_rank) && r.text(mpirun.local_rank) && torch.local_rank != mpi.local_rank)
    throw ConfigError(format("LOCAL_RANK={} contradicts OMPI_COMM_WORLD_LOCAL_RANK={}: {}", torch.local_rank, mpi.local_rank, remedy));
}

// A script that exports RANK gives all tasks of srun the same one. torchrun's ranks, and those of mpirun, are not srun's tasks.
void compare_with_step(const Reader& r, const LaunchedRank& torch) {
  if (!r.text("SLURM_STEP_ID") || r.text("TORCHELASTIC_RUN_ID")) return;
  const auto task = r.number(srun.rank, 0, most_ranks), tasks = r.number(srun.size, 1, most_ranks);
  if (!task || !tasks || *tasks == 1 || torch.size > *tasks || (torch.size == *tasks && torch.rank == *task)) return;
  throw ConfigError(
      format("RANK={} of WORLD_SIZE={} contradicts SLURM_PROCID={} of SLURM_STEP_NUM_TASKS={}: unset RANK and WORLD_SIZE, "
             "since srun sets the ranks",
             torch.rank, torch.size, *task, *tasks));
}

void compare_with_pmix(const Reader& r, const LaunchedRank& p, const char* rank) {
  const auto pmix = r.number("PMIX_RANK", 0, most_ranks);
  if (pmix && *pmix != p.rank) throw ConfigError(format("PMIX_RANK={} contradicts {}={}: {}", *pmix, rank, p.rank, remedy));
}

// The number of tasks on node `node` of "2(x3),1", or none if the text is no such list.
std::optional<int> tasks_on(std::string_view list, int node) {
  while (!list.empty()) {
    const std::string_view part = list.substr(0, list.find(','));
    list.remove_prefix(std::min(list.size(), part.size() + 1));
    int tasks = 0, nodes = 1;
    const char* const end = part.data() + part.size();
    auto [at, error] = std::from_chars(part.data(), end, tasks);
    if (error == std::errc() && end - at > 3 && at[0] == '(' && at[1] == 'x') {
      const auto repeated = std::from_chars(at + 2, end, nodes);
      at = repeated.ptr < end && *repeated.ptr == ')' ? repeated.ptr + 1 : end + 1, error = repeated.ec;
    }
    if (error != std::errc() || at != end || tasks < 1 || nodes < 1) return {};
    if (node < nodes) return tasks;
    node -= nodes;
  }
  return {};
}

std::optional<LaunchedRank> read_step(const Reader& r) {
  auto p = read_rank(r, Launcher::srun, srun);
  const auto list = r.text("SLURM_STEP_TASKS_PER_NODE");
  const auto node = r.number("SLURM_NODEID", 0, most_ranks);
  if (!p || !list || !node) return p;
  const auto tasks = tasks_on(*list, *node);
  if (!tasks || *tasks <= p->local_rank)
    throw ConfigError(format("SLURM_STEP_TASKS_PER_NODE={} has no task {} on node {}: {}", printable(*list), p->local_rank, *node, remedy));
  p->local_size = *tasks;
  return p;
}

void set_torchrun_address(const Reader& r, LaunchedRank& p) {
  const auto host = r.text("MASTER_ADDR");
  const auto port = r.number("MASTER_PORT", 1, 65535);
  if (p.size == 1) return;
  if (!host || !port)
    throw ConfigError(
        format("WORLD_SIZE={}, but {} is not set: it names the place of rank 0", p.size, host ? "MASTER_PORT" : "MASTER_ADDR"));
  const auto agent = r.text("TORCHELASTIC_USE_AGENT_STORE");
  const bool taken = agent && (*agent == "True" || *agent == "true" || *agent == "1");
  p.host = *host;
  p.port = !taken ? *port : *port < 65535 ? *port + 1 : *port - 1;
}

void set_srun_address(const Reader& r, LaunchedRank& p) {
  if (p.size == 1) return;
  p.host = r.text("MASTER_ADDR").value_or("");
  if (p.host.empty() && r.number("SLURM_STEP_NUM_NODES", 1, most_ranks).value_or(2) == 1) p.host = "127.0.0.1";
  if (p.host.empty())
    throw ConfigError(
        "srun started ranks on several hosts, but MASTER_ADDR is not set: export MASTER_ADDR=$(scontrol show hostnames "
        "\"$SLURM_JOB_NODELIST\" "
        "| head -n1)");
  p.port = 20000 + r.number("SLURM_JOB_ID", 0, 2147483647).value_or(0) % 20000;
}

}  // namespace

LaunchedRank launched_rank_among(const Variables& get) {
  const Reader r(get);
  const auto torch = read_rank(r, Launcher::torchrun, torchrun), mpi = read_rank(r, Launcher::mpirun, mpirun);
  LaunchedRank p;
  if (torch && mpi) compare(r, *torch, *mpi);
  if (mpi) {
    p = *mpi;
    compare_with_pmix(r, p, mpirun.rank);
  } else if (torch) {
    p = *torch;
    compare_with_step(r, p);
    set_torchrun_address(r, p);
  } else if (r.text("SLURM_STEP_ID")) {
    p = read_step(r).value_or(LaunchedRank{});
    compare_with_pmix(r, p, srun.rank);
    set_srun_address(r, p);
  }
  if (const auto port = r.number("OCTET_PORT", 1, 65535); port && p.launcher != Launcher::none) p.port = *port;
  if (p.launcher != Launcher::none) p.token = r.text(token_variable).value_or("");
  return p;
}

int thread_ranks_among(const Variables& get) {
  const Reader r(get);
  const auto ranks = r.number("OCTET_THREAD_RANKS", 1, 1024);
  if (!ranks) return 0;
  if (const LaunchedRank p = launched_rank_among(get); p.size > 1)
    throw ConfigError(
        format("OCTET_THREAD_RANKS={}, but {} has started {} processes: unset OCTET_THREAD_RANKS", *ranks, name(p.launcher), p.size));
  return *ranks;
}

void require_mpi_start(const LaunchedRank& p, const Variables& get) {
  if (p.launcher != Launcher::srun || p.size == 1 || get("PMIX_RANK")) return;
  throw ConfigError(
      format("srun has started {} tasks without PMIx, by which MPI finds them: use srun --mpi=pmix, or call mpirun or octet launch in the "
             "job script",
             p.size));
}

std::optional<std::string> environment_variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

LaunchedRank launched_rank_from_environment() { return launched_rank_among(environment_variable); }
int thread_ranks_from_environment() { return thread_ranks_among(environment_variable); }

}  // namespace octet::comm
