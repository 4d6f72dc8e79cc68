#pragma once

#include "octet/comm/mpi/transport.hpp"

namespace octet::comm {

/// The functions of liboctet_mpi.so, opened on the first call. Throws DeviceError if it is missing or of another version.
const MpiTransport& mpi_transport();

}  // namespace octet::comm
