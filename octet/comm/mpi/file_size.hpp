#pragma once

namespace octet::comm {

/// Ranks over MPI share memory through files of a few MiB. Throws IoError where the system allows this process smaller files only (ulimit
/// -f): MPI would end with lines of its own, or wait for ever.
void require_mpi_file_size();

}  // namespace octet::comm
