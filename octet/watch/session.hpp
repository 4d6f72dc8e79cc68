#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <cstddef>
#include <list>
#include <memory>

#include "octet/watch/guard.hpp"
#include "octet/watch/server.hpp"

namespace octet::watch {

class Session;

/// The state that all connections share.
struct Hall {
  Runs& runs;
  ServerOptions options;
  Guard guard;
  std::size_t connections = 0, answer_bytes = 0;
  std::list<std::weak_ptr<Session>> streams{};  // of server-sent events

  /// Lets each stream write new events.
  void wake();
};

/// Answers the requests of a connection until it is closed, or refuses it where there are too many.
void begin_session(Hall&, boost::asio::ip::tcp::socket);

}  // namespace octet::watch
