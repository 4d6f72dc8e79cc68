#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "octet/comm/rendezvous/socket.hpp"

namespace octet::comm {

inline constexpr std::size_t most_token = 64;

/// Where and how the ranks of a run find each other before their communicator exists.
struct Meeting {
  int rank = 0, size = 1;
  std::string host;  // of rank 0; "": loopback
  int port = 0;
  double limit_seconds = 60;  // until all must have come
  std::string token = {};     // a secret that the ranks share, at most most_token bytes; "": none
};

/// The result of a meeting.
struct Met {
  std::string message;              // of rank 0
  std::vector<Socket> connections;  // of rank 0: [size], to each rank, its own empty; of others: one, to rank 0
};

/// All ranks call it. Rank 0 listens, checks that every rank 1 .. size-1 has come once, with the same `agreement`, and gives all of them
/// its `message`. Connections stay open. agreement: the text that all ranks must have alike, such as a checksum of their configuration,
/// at most 256 bytes; message: of rank 0, such as NCCL's id, at most 64 KiB. Connections that do not speak this protocol, have
/// another token, are slow or send too much are dropped and counted in a warning: they end nothing. If many say nothing, the oldest make
/// room. Throws ConfigError on every rank if agreements or sizes differ or a rank comes twice; without a token, which a stranger could
/// imitate, on that rank alone, while the others wait. IoError if one has not come within the limit or the port cannot be opened. Reads at
/// most 340 bytes from a connection; never more than size + 64 connections at once. A rank whose connection is closed without an answer
/// comes again.
Met meet(const Meeting&, const std::string& agreement, const std::string& message);

/// The same for rank 0 with a socket that already listens: for tests.
Met host_meeting(const Meeting&, const Socket& listener, const std::string& agreement, const std::string& message);

}  // namespace octet::comm
