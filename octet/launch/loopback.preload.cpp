#include <dlfcn.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdlib>
#include <cstring>

// liboctet_loopback.so, which the dynamic linker loads before mpirun: that listens on all addresses of the host with any of
// its options, although all ranks are on this host. Here it listens on loopback.

namespace {

using Bind = int (*)(int, const sockaddr*, socklen_t);
constexpr const char* variable = "LD_PRELOAD";
constexpr const char* file = "liboctet_loopback.so";

// Processes that mpirun starts do not load this. The launcher has put it first.
[[gnu::constructor]] void leave_environment() {
  const char* const list = std::getenv(variable);
  const char* const own = list == nullptr ? nullptr : std::strstr(list, file);
  if (own == nullptr) return;
  const char* const rest = own + std::strlen(file);
  if (*rest == ':') ::setenv(variable, rest + 1, 1);
  else ::unsetenv(variable);
}

}  // namespace

extern "C" int bind(int socket, const sockaddr* address, socklen_t size) {
  static const Bind next = reinterpret_cast<Bind>(::dlsym(RTLD_NEXT, "bind"));
  if (address->sa_family == AF_INET && size >= sizeof(sockaddr_in)) {
    sockaddr_in a;
    std::memcpy(&a, address, sizeof a);
    if (a.sin_addr.s_addr == htonl(INADDR_ANY)) a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return next(socket, reinterpret_cast<const sockaddr*>(&a), sizeof a);
  }
  if (address->sa_family == AF_INET6 && size >= sizeof(sockaddr_in6)) {
    sockaddr_in6 a;
    std::memcpy(&a, address, sizeof a);
    if (std::memcmp(&a.sin6_addr, &in6addr_any, sizeof in6addr_any) == 0) a.sin6_addr = in6addr_loopback;
    return next(socket, reinterpret_cast<const sockaddr*>(&a), sizeof a);
  }
  return next(socket, address, size);
}
