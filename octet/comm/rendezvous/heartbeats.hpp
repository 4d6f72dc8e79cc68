#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "octet/comm/rendezvous/socket.hpp"

namespace octet::comm {

/// Which ranks of a run are there, beside their collectives: a library that waits for a lost rank does not know its name. Each rank sends
/// rank 0 the number of its calls every `every` seconds, by a thread of its own, and rank 0 tells all others which rank it has lost. A rank
/// whose process ends or whose host does not answer is lost; one that is stopped sends nothing; one that hangs sends an old number.
/// A rank that ends in order, without an exception, says so. Thread-safe.
class Heartbeats {
 public:
  /// connections: of rank 0, one to each rank, its own empty; of others, the one to rank 0 alone (Met).
  Heartbeats(int rank, std::vector<Socket> connections, double every = 0.5);
  ~Heartbeats();
  Heartbeats(const Heartbeats&) = delete;
  Heartbeats& operator=(const Heartbeats&) = delete;

  /// This rank has begun another call.
  void called() { ++calls_; }

  /// A rank that others wait for.
  struct Absent {
    int rank = -1;
    std::string text;  // "rank 2 on node7 has ended"
  };
  /// A rank that is known to be lost, at once.
  std::optional<Absent> lost() const;
  /// When waiting has lasted too long: that rank, or one that has sent nothing for `seconds`, or the one with the fewest calls, if it has
  /// fewer than this one. Ranks other than 0 see rank 0 alone, and the ranks that it has lost.
  std::optional<Absent> late(double seconds) const;

 private:
  struct Beat;  // a message
  struct Other {
    int rank = -1;
    Socket socket;
    std::string host{}, received{};
    std::string unsent{};  // the rest of messages, of which the first may be begun
    double last = 0;       // when something came from it
    std::int64_t calls = 0;
    bool ended = false;  // in order
  };
  void run(const std::stop_token&);
  void send(const Beat&);
  void flush();
  void listen();
  bool listen_to(Other&);
  void lose(const Absent&, const std::string& host);
  std::string name_of(const Other&) const;

  int rank_;
  double every_;
  std::atomic<std::int64_t> calls_ = 0;
  std::vector<Other> others_;
  std::optional<Absent> lost_;
  mutable std::mutex mutex_;
  std::jthread thread_;  // last: it uses the others
};

}  // namespace octet::comm
