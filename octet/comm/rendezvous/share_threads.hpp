#pragma once

#include "octet/comm/rendezvous/launched_rank.hpp"

namespace octet::comm {

/// Limits this process, a rank, to its share of the host's threads: SLURM_CPUS_PER_TASK under srun, else all of them / ranks of the host,
/// at least one. Changes nothing where OMP_NUM_THREADS is set, which is a number per rank.
void share_threads(const LaunchedRank&);

}  // namespace octet::comm
