#include "octet/base/host_name.hpp"

#include <unistd.h>

namespace octet {

std::string host_name() {
  char name[65] = {};  // HOST_NAME_MAX of Linux is 64
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "unknown";
}

}  // namespace octet
