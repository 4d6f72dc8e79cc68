#include "octet/comm/rendezvous/share_threads.hpp"

#include <algorithm>

#include "octet/base/text.hpp"
#include "octet/tensor/cpu/threads.hpp"

namespace octet::comm {

void share_threads(const LaunchedRank& launched) {
  if (environment_variable("OMP_NUM_THREADS")) return;
  const auto given = launched.launcher == Launcher::srun ? environment_variable("SLURM_CPUS_PER_TASK") : std::nullopt;
  const double of_task = given ? parse_number(*given).value_or(0) : 0;  // a host may have fewer than its tasks were promised
  const int share = of_task >= 1 && of_task < 1e6 ? int(of_task) : cpu::threads() / launched.local_size;
  cpu::set_threads(std::clamp(share, 1, cpu::threads()));
}

}  // namespace octet::comm
