#include "octet/comm/rendezvous/socket.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>

#include "octet/base/clock.hpp"
#include "octet/base/error.hpp"
#include "octet/base/text.hpp"

namespace octet::comm {
namespace {

using Addresses = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

bool is_loopback(const std::string& host) { return host.empty() || host == "localhost"; }

Addresses addresses_of(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const std::string name = is_loopback(host) ? "127.0.0.1" : host;
  const int code = getaddrinfo(name.c_str(), std::to_string(port).c_str(), &hints, &list);
  if (code != 0) throw IoError(format("the host '{}' is not found: {}; check MASTER_ADDR", printable(host), gai_strerror(code)));
  return {list, freeaddrinfo};
}

Socket socket_for(const addrinfo& a) { return Socket(socket(a.ai_family, a.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, a.ai_protocol)); }

// Whether the socket is ready before the deadline.
bool ready(const Socket& s, short events, double deadline) {
  for (;;) {
    const double left = deadline - monotonic_seconds();
    if (left <= 0) return false;
    pollfd p{s.number(), events, 0};
    const int code = poll(&p, 1, int(std::min(left * 1000, 1e6)) + 1);
    if (code > 0) return true;
    if (code < 0 && errno != EINTR) return false;
  }
}

// 0, or the reason why there is no connection.
int try_connect(const Socket& s, const addrinfo& a, double deadline) {
  if (connect(s.number(), a.ai_addr, a.ai_addrlen) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  if (!ready(s, POLLOUT, deadline)) return ETIMEDOUT;
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(s.number(), SOL_SOCKET, SO_ERROR, &error, &size);
  return error;
}

}  // namespace

void Socket::close() {
  if (number_ >= 0) ::close(number_);
  number_ = -1;
}

namespace {

bool is_loopback(const addrinfo& a) {
  if (a.ai_family == AF_INET6) return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(a.ai_addr)->sin6_addr);
  return ntohl(reinterpret_cast<const sockaddr_in*>(a.ai_addr)->sin_addr.s_addr) >> 24 == 127;
}

bool is_number(const std::string& host) {
  in6_addr any;
  return inet_pton(AF_INET, host.c_str(), &any) == 1 || inet_pton(AF_INET6, host.c_str(), &any) == 1;
}

// 0, or the reason why it does not listen.
int try_listen(const Socket& s, const sockaddr* address, socklen_t size) {
  const int on = 1, off = 0;
  if (address->sa_family == AF_INET6) setsockopt(s.number(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  const bool listens = s.ok() && setsockopt(s.number(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
                       bind(s.number(), address, size) == 0 && listen(s.number(), 1024) == 0;
  return listens ? 0 : errno;
}

// Of both families where there are both.
Socket listen_everywhere(int port) {
  const sockaddr_in6 both{.sin6_family = AF_INET6, .sin6_port = htons(std::uint16_t(port)), .sin6_addr = in6addr_any};
  const sockaddr_in one{.sin_family = AF_INET, .sin_port = htons(std::uint16_t(port)), .sin_addr = {INADDR_ANY}};
  const int kind = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;
  Socket s(socket(AF_INET6, kind, 0));
  if (try_listen(s, reinterpret_cast<const sockaddr*>(&both), sizeof both) == 0) return s;
  s = Socket(socket(AF_INET, kind, 0));
  return try_listen(s, reinterpret_cast<const sockaddr*>(&one), sizeof one) == 0 ? std::move(s) : Socket();
}

}  // namespace

Socket listen_on(const std::string& host, int port) {
  const Addresses list = addresses_of(host, port);
  const bool everywhere = !is_loopback(host) && !is_number(host) && (list->ai_next != nullptr || is_loopback(*list));
  Socket s = everywhere ? listen_everywhere(port) : socket_for(*list);
  if (s.ok() && (everywhere || try_listen(s, list->ai_addr, list->ai_addrlen) == 0)) return s;
  throw IoError(format("rank 0 cannot listen on {}:{}: {}; choose another port with OCTET_PORT, or an address of this host in MASTER_ADDR",
                       is_loopback(host) ? "127.0.0.1" : printable(host), port, std::strerror(errno)));
}

int port_of(const Socket& s) {
  sockaddr_storage a{};
  socklen_t size = sizeof a;
  if (getsockname(s.number(), reinterpret_cast<sockaddr*>(&a), &size) != 0) return 0;
  return ntohs(a.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(a).sin6_port : reinterpret_cast<sockaddr_in&>(a).sin_port);
}

Socket accept_from(const Socket& listener) { return Socket(accept4(listener.number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)); }

Socket connect_to(const std::string& host, int port, double deadline) {
  const double start = monotonic_seconds();
  for (int reason = 0;;) {
    const Addresses list = addresses_of(host, port);
    for (const addrinfo* a = list.get(); a != nullptr; a = a->ai_next) {
      Socket s = socket_for(*a);
      reason = s.ok() ? try_connect(s, *a, deadline) : errno;
      if (reason == 0) return s;
    }
    if (monotonic_seconds() + 0.05 > deadline)
      throw IoError(format("rank 0 does not answer on {}:{} within {} s: {}; check MASTER_ADDR, and whether rank 0 was started",
                           is_loopback(host) ? "127.0.0.1" : printable(host), port, fixed(deadline - start, 1), std::strerror(reason)));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

std::ptrdiff_t receive_some(const Socket& s, void* to, std::size_t most) {
  for (;;) {
    const ssize_t n = recv(s.number(), to, most, 0);
    if (n > 0) return n;
    if (n == 0) return -1;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return 0;
    if (errno != EINTR) return -1;
  }
}

std::ptrdiff_t send_some(const Socket& s, const void* from, std::size_t bytes) {
  for (;;) {
    const ssize_t n = send(s.number(), from, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n >= 0) return n;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return 0;
    if (errno != EINTR) return -1;
  }
}

bool send_all(const Socket& s, const void* from, std::size_t bytes, double deadline) {
  const char* at = static_cast<const char*>(from);
  while (bytes > 0) {
    const ssize_t n = send(s.number(), at, bytes, MSG_NOSIGNAL);
    if (n > 0) at += n, bytes -= std::size_t(n);
    else if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) return false;
    else if (!ready(s, POLLOUT, deadline)) return false;
  }
  return true;
}

bool receive_all(const Socket& s, void* to, std::size_t bytes, double deadline) {
  char* at = static_cast<char*>(to);
  while (bytes > 0) {
    const std::ptrdiff_t n = receive_some(s, at, bytes);
    if (n < 0) return false;
    if (n == 0 && !ready(s, POLLIN, deadline)) return false;
    at += n, bytes -= std::size_t(n);
  }
  return true;
}

}  // namespace octet::comm
