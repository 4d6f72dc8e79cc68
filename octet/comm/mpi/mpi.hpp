#pragma once

#include "octet/comm/communicator.hpp"

namespace octet::comm {

/// The processes that mpirun or srun started, or this one alone. Opens liboctet_mpi.so, which is built where MPI is installed, and calls
/// MPI_Init. Call it once per process, before threads that use MPI. Sums have the bits of the threads' communicator.
/// MPI is finalized when the last communicator is gone, unless one has failed: the launcher then ends all ranks as this process exits.
/// `limit_seconds`: how long a rank waits for others. MPI's start and end and split() cannot be left: if one takes longer, the process says
/// so and exits with the code of lost ranks. Throws ConfigError if srun started the ranks without PMIx, DeviceError if the module or MPI
/// itself cannot be opened, CommError as every communicator does.
std::unique_ptr<Communicator> connect_mpi(double limit_seconds = 60);

/// The path of the module, "" if there is none.
std::string mpi_module_path();

}  // namespace octet::comm
