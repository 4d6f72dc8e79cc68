#include "octet/comm/rendezvous/heartbeats.hpp"

#include <poll.h>

#include <algorithm>
#include <cstring>
#include <exception>

#include "octet/base/clock.hpp"
#include "octet/base/host_name.hpp"
#include "octet/base/text.hpp"

namespace octet::comm {
namespace {

constexpr std::size_t host_room = 64;
constexpr double end_seconds = 0.2;  // for the last message: a rank that does not read is stopped or lost, and must not stop this one

}  // namespace

// In the byte order of x86-64, which the rendezvous has checked.
struct Heartbeats::Beat {
  enum Kind : std::int32_t { here = 1, ended = 2, lost = 3 };
  std::int32_t kind = here, rank = -1;  // lost: which one
  std::int64_t calls = 0;
  char host[host_room] = {};
};

Heartbeats::Heartbeats(int rank, std::vector<Socket> connections, double every) : rank_(rank), every_(every) {
  for (std::size_t i = 0; i < connections.size(); ++i)
    if (connections[i].ok()) others_.push_back({.rank = int(i), .socket = std::move(connections[i]), .last = monotonic_seconds()});
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

Heartbeats::~Heartbeats() {
  thread_.request_stop();
  thread_.join();
  if (std::uncaught_exceptions() > 0) return;
  send({.kind = Beat::ended, .rank = rank_, .calls = calls_});
  for (const Other& o : others_)
    if (o.socket.ok()) send_all(o.socket, o.unsent.data(), o.unsent.size(), monotonic_seconds() + end_seconds);
}

void Heartbeats::run(const std::stop_token& stop) {
  double next = 0;
  while (!stop.stop_requested()) {
    if (monotonic_seconds() >= next) {
      Beat beat{.rank = rank_, .calls = calls_};
      host_name().copy(beat.host, host_room - 1);
      send(beat);
      next = monotonic_seconds() + every_;
    }
    flush();
    listen();
  }
}

// A rank that does not read gets no more beats, but every other message. A begun message is finished first, so none is cut off.
void Heartbeats::send(const Beat& beat) {
  for (Other& o : others_)
    if (o.socket.ok() && (o.unsent.empty() || beat.kind != Beat::here)) o.unsent.append(reinterpret_cast<const char*>(&beat), sizeof beat);
  flush();
}

void Heartbeats::flush() {
  for (Other& o : others_) {
    if (!o.socket.ok() || o.unsent.empty()) continue;
    const std::ptrdiff_t n = send_some(o.socket, o.unsent.data(), o.unsent.size());
    if (n > 0) o.unsent.erase(0, std::size_t(n));
  }
}

// Until something comes, or a tenth of the time between beats has passed.
void Heartbeats::listen() {
  std::vector<pollfd> all;
  for (const Other& o : others_) all.push_back({o.socket.number(), POLLIN, 0});
  poll(all.data(), all.size(), std::max(1, int(every_ * 100)));
  for (Other& o : others_) {
    if (!o.socket.ok() || listen_to(o)) continue;
    o.socket.close();
    if (!o.ended) lose({o.rank, name_of(o) + " has ended"}, o.host);
  }
}

// False once the other side has closed.
bool Heartbeats::listen_to(Other& o) {
  for (;;) {
    char bytes[sizeof(Beat)];
    const std::ptrdiff_t n = receive_some(o.socket, bytes, sizeof(Beat) - o.received.size());
    if (n <= 0) return n == 0;
    o.received.append(bytes, std::size_t(n));
    if (o.received.size() < sizeof(Beat)) continue;
    Beat beat;
    std::memcpy(&beat, o.received.data(), sizeof beat);
    o.received.clear(), beat.host[host_room - 1] = 0;
    if (beat.kind == Beat::lost) {
      // Rank 0 tells it to the others.
      if (rank_ != 0 && beat.rank > 0) lose({beat.rank, format("rank {} on {} has ended", beat.rank, printable(beat.host))}, beat.host);
      continue;
    }
    if (beat.kind != Beat::here && beat.kind != Beat::ended) continue;
    const std::lock_guard lock(mutex_);
    o.last = monotonic_seconds(), o.calls = beat.calls, o.host = beat.host, o.ended |= beat.kind == Beat::ended;
  }
}

// The first one, which rank 0 tells all others.
void Heartbeats::lose(const Absent& who, const std::string& host) {
  {
    const std::lock_guard lock(mutex_);
    if (lost_) return;
    lost_ = who;
  }
  if (rank_ != 0) return;
  Beat beat{.kind = Beat::lost, .rank = who.rank};
  host.copy(beat.host, host_room - 1);
  send(beat);
}

std::string Heartbeats::name_of(const Other& o) const {
  return format("rank {}{}", o.rank, o.host.empty() ? "" : " on " + printable(o.host));
}

std::optional<Heartbeats::Absent> Heartbeats::lost() const {
  const std::lock_guard lock(mutex_);
  return lost_;
}

std::optional<Heartbeats::Absent> Heartbeats::late(double seconds) const {
  const std::lock_guard lock(mutex_);
  if (lost_) return lost_;
  const double now = monotonic_seconds();
  for (const Other& o : others_)
    if (!o.ended && now - o.last > std::max(seconds, 4 * every_))
      return Absent{o.rank, format("{} has not run for {} s", name_of(o), fixed(now - o.last, 1))};
  const auto least = std::min_element(others_.begin(), others_.end(), [](const Other& a, const Other& b) { return a.calls < b.calls; });
  if (least == others_.end() || least->calls >= calls_) return std::nullopt;
  return Absent{least->rank, format("{} has made {} calls, this rank {}", name_of(*least), least->calls, calls_.load())};
}

}  // namespace octet::comm
