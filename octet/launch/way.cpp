#include "octet/launch/way.hpp"

#include "octet/base/error.hpp"
#include "octet/base/text.hpp"
#include "octet/comm/mpi/mpi.hpp"
#include "octet/comm/rendezvous/gpus.hpp"
#include "octet/comm/rendezvous/launched_rank.hpp"
#include "octet/launch/process.hpp"
#include "octet/tensor/cuda/device.hpp"

namespace octet::launch {
namespace {

Choice on_gpus(int ranks, const Machine& m) {
  const int gpus = int(m.gpus.size());
  if (ranks > gpus)
    throw ConfigError(format("--ranks {}: this machine shows {}; choose at most that many, or --device cpu", ranks, counted(gpus, "GPU")));
  const int chosen = ranks == 0 ? gpus : ranks;
  return {Way::gpus, chosen, counted(chosen, "rank") + ", one process per GPU"};
}

}  // namespace

Machine this_machine() {
  Machine m{.gpus = comm::visible_gpus(comm::environment_variable),
            .no_gpu = "",
            .mpirun = find_program("mpirun"),
            .mpi_module = comm::mpi_module_path()};
  m.no_gpu = m.gpus.empty() ? "this machine shows none" : cuda::why_unavailable();
  return m;
}

Choice choose(int ranks, Devices devices, const Machine& m) {
  if (devices == Devices::gpu && !m.no_gpu.empty()) throw DeviceError(format("--device gpu: no GPU works here: {}", m.no_gpu));
  if (devices != Devices::cpu && m.no_gpu.empty()) return on_gpus(ranks, m);
  if (ranks == 0)
    throw ConfigError(devices == Devices::cpu ? "--device cpu: say with --ranks how many ranks shall share the CPUs"
                                              : "no GPU works here: say with --ranks how many ranks shall share the CPUs");
  const std::string words = counted(ranks, "rank") + " on CPUs";
  if (ranks == 1) return {Way::threads, 1, words};
  if (m.mpirun.empty()) return {Way::threads, ranks, words + ", threads of one process: mpirun is not installed"};
  if (m.mpi_module.empty()) return {Way::threads, ranks, words + ", threads of one process: liboctet_mpi.so is not found"};
  return {Way::mpi, ranks, words + ", processes over MPI"};
}

}  // namespace octet::launch
