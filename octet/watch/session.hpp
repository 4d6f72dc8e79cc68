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
  std::size_t answer_bytes = 0;
  std::list<Session*> connections{};            // that are open
  std::list<std::weak_ptr<Session>> streams{};  // of server-sent events

  /// Lets each stream write new events.
  void wake();
  /// Closes the connection, or the stream, that has waited longest, if it has had its share. Returns whether there was one.
  bool make_room();
  bool make_room_for_stream();
};

/// Answers the requests of a connection until it is closed, or refuses it where there are too many.
void begin_session(Hall&, boost::asio::ip::tcp::socket);

}  // namespace octet::watch
