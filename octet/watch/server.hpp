#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "octet/watch/runs.hpp"

namespace octet::watch {

/// Bounds on the memory and the time that requests cost. A request beyond one of them is refused and its connection closed.
struct ServerLimits {
  std::size_t connections = 64;  // a further one takes the place of another that has had its share; without one it gets status 503
  std::size_t streams = 16;      // of these, server-sent events; each may need the history of another run
  double share_seconds = 1;      // the share of a connection that was not answered yet; an answered one that waits has had it
  double stream_seconds = 10;    // the share of a stream
  std::uint32_t header_bytes = 16 << 10;
  std::size_t answer_bytes = std::size_t(32) << 20;  // of all answers that are being written
  double header_seconds = 10;                        // until a request has its header, also the first byte of the next one
  double write_seconds = 20;                         // until an answer is taken
};

struct ServerOptions {
  std::string host = "127.0.0.1";  // an address, or localhost
  std::uint16_t port = 0;          // 0: one that is free
  std::string token{};             // for data; "" for none, on a loopback address alone
  bool prometheus = false;         // answers /metrics
  ServerLimits limits{};
};

/// Serves the page and the data of runs by HTTP/1.1 on one thread. GET and HEAD alone; no path of a request is a path of a file.
class Server {
 public:
  /// Listens. Throws ConfigError for an address that is not one, for one that other machines reach without a token, and for a token of less
  /// than 16 characters; IoError where the port is taken.
  Server(Runs&, const ServerOptions&);
  ~Server();

  std::uint16_t port() const;
  /// "http://127.0.0.1:6160/", with the token behind '#', which browsers do not send.
  std::string address() const;

  /// Answers until stop(), SIGINT or SIGTERM.
  void run();
  /// May be called from another thread.
  void stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace octet::watch
