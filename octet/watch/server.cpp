#include "octet/watch/server.hpp"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <algorithm>
#include <csignal>

#include "octet/base/error.hpp"
#include "octet/base/host_name.hpp"
#include "octet/base/text.hpp"
#include "octet/telemetry/run_link.hpp"
#include "octet/watch/session.hpp"

namespace octet::watch {
namespace {

namespace net = boost::asio;
using tcp = net::ip::tcp;

constexpr std::int64_t slice_bytes = std::int64_t(4) << 20;  // read between two answers
constexpr auto tick = std::chrono::milliseconds(200);
constexpr int ticks_per_discovery = 25;
constexpr std::size_t shortest_token = 16;
constexpr int waiting_connections = 512;

net::ip::address address_of(const ServerOptions& o) {
  boost::system::error_code error;
  const auto address = net::ip::make_address(o.host == "localhost" ? "127.0.0.1" : o.host, error);
  if (error) throw ConfigError(format("--host {}: must be an address such as 127.0.0.1 or 0.0.0.0", printable(o.host)));
  if (!address.is_loopback() && o.token.empty())
    throw ConfigError(
        format("--host {}: other machines reach this address; set a token of at least {} characters with --token-file or --token, or leave "
               "--host out and use an ssh tunnel",
               printable(o.host), shortest_token));
  return address;
}

const ServerOptions& checked(const ServerOptions& o) {
  const auto fits_header = [](char c) { return c > ' ' && c <= '~'; };
  if (!o.token.empty() && (o.token.size() < shortest_token || !std::ranges::all_of(o.token, fits_header)))
    throw ConfigError(format("the token must have at least {} ASCII characters and no spaces, as of openssl rand -hex 16", shortest_token));
  return o;
}

}  // namespace

struct Server::State {
  State(Runs& all, const ServerOptions& options)
      : hall{all, checked(options), Guard({options.host, host_name()}, options.token)}, acceptor(context), retry(context), timer(context) {
    const tcp::endpoint endpoint(address_of(options), options.port);
    boost::system::error_code error;
    acceptor.open(endpoint.protocol(), error);
    if (!error) acceptor.set_option(net::socket_base::reuse_address(true), error);
    if (!error) acceptor.bind(endpoint, error);
    if (!error) acceptor.listen(waiting_connections, error);
    if (error)
      throw IoError(format("cannot listen on {} port {}: {}; choose another port with --port", printable(options.host), options.port,
                           error.message()));
  }

  void accept() {
    acceptor.async_accept([this](const boost::system::error_code& error, tcp::socket socket) {
      if (error == net::error::operation_aborted) return;
      if (error) {  // no descriptors are left: their number falls with the time limits of connections
        retry.expires_after(tick);
        retry.async_wait([this](const boost::system::error_code& e) {
          if (!e) accept();
        });
        return;
      }
      begin_session(hall, std::move(socket));
      accept();
    });
  }

  void wait() {
    timer.expires_after(tick);
    timer.async_wait([this](const boost::system::error_code& error) {
      if (error) return;
      if (++ticks % ticks_per_discovery == 0) hall.runs.discover();
      read();
      wait();
    });
  }

  // Large files are read in slices, so that answers are given between them.
  void read() {
    if (reading) return;
    reading = hall.runs.read(slice_bytes);
    hall.wake();
    if (reading) net::post(context, [this] { reading = false, read(); });
  }

  Hall hall;  // before the context, whose end destroys the sessions that refer to it
  net::io_context context{1};
  tcp::acceptor acceptor;
  net::steady_timer retry, timer;
  int ticks = 0;
  bool reading = false;
};

Server::Server(Runs& runs, const ServerOptions& options) : state_(std::make_unique<State>(runs, options)) {}
Server::~Server() = default;

std::uint16_t Server::port() const { return state_->acceptor.local_endpoint().port(); }

std::string Server::address() const {
  const ServerOptions& o = state_->hall.options;
  const std::string host = o.host.find(':') == std::string::npos ? o.host : "[" + o.host + "]";
  return format("http://{}:{}/{}", host, port(), o.token.empty() ? "" : "#t=" + telemetry::encoded(o.token));
}

void Server::run() {
  net::signal_set signals(state_->context, SIGINT, SIGTERM);
  signals.async_wait([this](const boost::system::error_code& error, int) {
    if (!error) state_->context.stop();
  });
  state_->accept();
  state_->wait();
  state_->context.run();
}

void Server::stop() {
  net::post(state_->context, [this] { state_->context.stop(); });
}

}  // namespace octet::watch
