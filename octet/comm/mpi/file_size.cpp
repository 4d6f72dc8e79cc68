#include "octet/comm/mpi/file_size.hpp"

#include <sys/resource.h>

#include "octet/base/error.hpp"
#include "octet/base/text.hpp"

namespace octet::comm {

void require_mpi_file_size() {
  constexpr rlim_t needed = rlim_t(8) << 20;  // Open MPI 4.1: 4 MiB per rank, and its tables
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur >= needed) return;
  throw IoError(
      format("ranks over MPI share memory through files of up to {}, and a file may have {} here: raise the limit of file sizes "
             "(ulimit -f)",
             bytes_text(double(needed)), bytes_text(double(limit.rlim_cur))));
}

}  // namespace octet::comm
