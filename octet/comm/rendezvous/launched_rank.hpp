#pragma once

#include <functional>
#include <optional>
#include <string>

namespace octet::comm {

/// The variable with the secret that ranks share, by which rank 0 recognizes them. `octet launch` makes one.
inline constexpr const char* token_variable = "OCTET_TOKEN";

/// The program that started the ranks.
enum class Launcher : std::uint8_t { none, torchrun, mpirun, srun };
constexpr std::string_view name(Launcher l) {
  constexpr std::string_view names[] = {"none", "torchrun", "mpirun", "srun"};
  return names[std::size_t(l)];
}

/// This process among the ranks.
struct LaunchedRank {
  Launcher launcher = Launcher::none;
  int rank = 0, size = 1;
  int local_rank = 0, local_size = 1;  // among the ranks of this host
  std::string host;                    // of rank 0; "": not known, and not needed under mpirun
  int port = 0;                        // on which rank 0 listens for Octet's rendezvous; 0: none
  std::string token = {};              // of token_variable
};

/// The value of an environment variable, or none.
using Variables = std::function<std::optional<std::string>(const char*)>;

/// Reads the variables of, in this order:
///   torchrun  RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT
///   mpirun    OMPI_COMM_WORLD_RANK, _SIZE, _LOCAL_RANK, _LOCAL_SIZE
///   srun      SLURM_PROCID SLURM_STEP_NUM_TASKS SLURM_LOCALID SLURM_NODEID SLURM_STEP_TASKS_PER_NODE, where SLURM_STEP_ID tells that a
///             step runs; MASTER_ADDR
/// Those of srun count only without the others, since srun starts torchrun and mpirun's daemons, too.
/// The port is OCTET_PORT; else of torchrun MASTER_PORT, or the next one while torchrun's agent itself listens there
/// (TORCHELASTIC_USE_AGENT_STORE); else of srun 20000 + SLURM_JOB_ID % 20000.
/// Throws ConfigError that names the variable: incomplete, no number, out of range, or two launchers contradict each other:
///   - torchrun's and mpirun's rank, size or local rank differ
///   - PMIX_RANK is not the rank of mpirun or srun that it belongs to
///   - RANK of WORLD_SIZE is not the rank that srun gave to this task, and no torchrun runs (TORCHELASTIC_RUN_ID): a job script exported it
LaunchedRank launched_rank_among(const Variables&);
/// The same with this process' environment.
LaunchedRank launched_rank_from_environment();

/// Ranks that shall be threads of this process (OCTET_THREAD_RANKS, which `octet launch` sets where there is no MPI); 0: not asked for.
/// Throws ConfigError if it is no integer from 1 to 1024, or a launcher has started several processes as well.
int thread_ranks_among(const Variables&);
int thread_ranks_from_environment();

/// Whether MPI can find the other ranks: mpirun, srun --mpi=pmix, or one process alone.
/// Throws ConfigError that names the remedy where srun started several tasks without PMIx.
void require_mpi_start(const LaunchedRank&, const Variables&);

/// Variables of this process.
std::optional<std::string> environment_variable(const char* name);

}  // namespace octet::comm
