#pragma once

#include <cstddef>
#include <string>
#include <utility>

namespace octet::comm {

/// A TCP socket that closes itself.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int number) : number_(number) {}
  ~Socket() { close(); }
  Socket(Socket&& from) noexcept : number_(std::exchange(from.number_, -1)) {}
  Socket& operator=(Socket&& from) noexcept {
    if (this != &from) close(), number_ = std::exchange(from.number_, -1);
    return *this;
  }

  int number() const { return number_; }
  bool ok() const { return number_ >= 0; }
  void close();

 private:
  int number_ = -1;
};

/// A socket that listens on a host's address: on loopback for "" and "localhost". On all addresses of this host for a name that has
/// several, or that this host gives to loopback, as some systems do with their own name: others reach it by another. Port 0: any free one.
/// Throws IoError with the remedy.
Socket listen_on(const std::string& host, int port);
/// The port that a socket is bound to.
int port_of(const Socket&);
/// The next connection, which does not block, or none.
Socket accept_from(const Socket& listener);
/// A connection within the time that is left until `deadline` (monotonic_seconds()): tries again until rank 0 listens. Throws IoError.
Socket connect_to(const std::string& host, int port, double deadline);

/// Bytes that have arrived, at most `most`; 0 if none have; -1 if the other side has closed or failed.
std::ptrdiff_t receive_some(const Socket&, void* to, std::size_t most);
/// Bytes that could be sent at once; -1 if the other side has closed or failed.
std::ptrdiff_t send_some(const Socket&, const void* from, std::size_t bytes);
/// Whether all bytes could be sent, or received, before the deadline.
bool send_all(const Socket&, const void* from, std::size_t bytes, double deadline);
bool receive_all(const Socket&, void* to, std::size_t bytes, double deadline);

}  // namespace octet::comm
