#pragma once

#include <string>

namespace octet {

/// The name of this machine in its network, "unknown" if the system does not tell it.
std::string host_name();

}  // namespace octet
