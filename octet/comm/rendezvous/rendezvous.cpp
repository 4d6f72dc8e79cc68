#include "octet/comm/rendezvous/rendezvous.hpp"

#include <poll.h>

#include <chrono>
#include <cstddef>
#include <cstring>
#include <map>
#include <optional>
#include <thread>
#include <vector>

#include "octet/base/check.hpp"
#include "octet/base/clock.hpp"
#include "octet/base/log.hpp"
#include "octet/comm/rendezvous/launched_rank.hpp"
#include "octet/comm/rendezvous/socket.hpp"

namespace octet::comm {
namespace {

constexpr std::uint64_t magic = 0x32307A7674636F6Fu;
constexpr std::size_t most_agreement = 256, most_message = 64 << 10;
constexpr double hello_seconds = 5;       // for a connection's first bytes
constexpr std::size_t most_waiting = 64;  // connections beyond the ranks

// The first bytes from a rank, in the byte order of x86-64; `length` bytes of its agreement follow.
struct Hello {
  std::uint64_t magic;
  std::int32_t rank, size, length;
  char token[most_token];
};
constexpr std::size_t hello_bytes = 20 + most_token;
static_assert(offsetof(Hello, token) == 20);
// The first bytes to a rank; the message follows, or the text of an error.
struct Answer {
  std::uint64_t magic;
  std::int32_t refused, length;
};
constexpr std::size_t answer_bytes = 16;

// A connection that has not said everything yet.
struct Guest {
  Socket socket;
  double until = 0;
  std::string bytes;
  Hello hello{};

  enum class Said { nothing_yet, all, nonsense };
  Said listen();
};

Guest::Said Guest::listen() {
  char buffer[hello_bytes + most_agreement];
  const std::size_t wanted =
      bytes.size() < hello_bytes ? hello_bytes - bytes.size() : hello_bytes + std::size_t(hello.length) - bytes.size();
  const std::ptrdiff_t n = receive_some(socket, buffer, wanted);
  if (n < 0) return Said::nonsense;
  bytes.append(buffer, std::size_t(n));
  if (bytes.size() < hello_bytes) return Said::nothing_yet;
  std::memcpy(&hello, bytes.data(), hello_bytes);
  if (hello.magic != magic || hello.length < 0 || hello.length > std::int32_t(most_agreement) || hello.rank < 0) return Said::nonsense;
  return bytes.size() < hello_bytes + std::size_t(hello.length) ? Said::nothing_yet : Said::all;
}

void set_token(Hello& hello, const std::string& token) { token.copy(hello.token, most_token); }

// In a time that does not tell how many bytes are right.
bool has_token(const Hello& hello, const std::string& token) {
  Hello wanted{};
  set_token(wanted, token);
  unsigned different = 0;
  for (std::size_t i = 0; i < most_token; ++i) different |= unsigned(hello.token[i]) ^ unsigned(wanted.token[i]);
  return different == 0;
}

bool answer(const Socket& s, bool refused, const std::string& text, double deadline) {
  const Answer a{magic, refused, std::int32_t(text.size())};
  return send_all(s, &a, answer_bytes, deadline) && send_all(s, text.data(), text.size(), deadline);
}

// Rank 0's side.
class Host {
 public:
  Host(const Meeting& m, const Socket& listener, const std::string& agreement)
      : meeting_(m), listener_(listener), agreement_(agreement), deadline_(monotonic_seconds() + m.limit_seconds) {}

  Met gather(const std::string& message);

 private:
  void wait();
  void admit();
  void hear();
  void hear_all_of(Guest);
  void make_room();
  std::size_t room() const { return std::size_t(meeting_.size) + most_waiting; }
  std::string objection(const Guest&) const;
  [[noreturn]] void refuse(const std::string& why);
  std::string missing() const;

  const Meeting& meeting_;
  const Socket& listener_;
  const std::string& agreement_;
  double deadline_;
  std::vector<Guest> guests_;
  std::map<int, Socket> ranks_;
  int dropped_ = 0;
  std::string objected_;  // to the last connection that was refused
};

void Host::wait() {
  std::vector<pollfd> all{{listener_.number(), POLLIN, 0}};
  for (const Guest& g : guests_) all.push_back({g.socket.number(), POLLIN, 0});
  poll(all.data(), all.size(), 50);
}

void Host::admit() {
  while (guests_.size() < room()) {
    Socket s = accept_from(listener_);
    if (!s.ok()) return;
    guests_.push_back({std::move(s), monotonic_seconds() + hello_seconds, {}, {}});
  }
}

std::string Host::objection(const Guest& g) const {
  const std::string theirs = g.bytes.substr(hello_bytes);
  if (g.hello.size != meeting_.size)
    return format("rank {} was started as one of {} ranks, rank 0 as one of {}", g.hello.rank, g.hello.size, meeting_.size);
  if (g.hello.rank == 0 || g.hello.rank >= meeting_.size || ranks_.contains(g.hello.rank))
    return format("two processes were started as rank {} of {}, or a number is out of range", g.hello.rank, meeting_.size);
  if (theirs != agreement_)
    return format("rank {} has another configuration than rank 0 ({} and {}): start all ranks with the same", g.hello.rank,
                  printable(theirs), printable(agreement_));
  return "";
}

void Host::hear() {
  const double now = monotonic_seconds();
  std::vector<Guest> waiting;
  for (Guest& g : guests_) {
    const Guest::Said said = g.listen();
    if (said == Guest::Said::nonsense || (said == Guest::Said::nothing_yet && now > g.until)) {
      ++dropped_;
    } else if (said == Guest::Said::nothing_yet) {
      waiting.push_back(std::move(g));
    } else {
      hear_all_of(std::move(g));
    }
  }
  guests_ = std::move(waiting);
}

// Without a token it may be a stranger: then it gets the objection, and ends nothing.
void Host::hear_all_of(Guest g) {
  if (!has_token(g.hello, meeting_.token)) return void(++dropped_);
  const std::string why = objection(g);
  if (why.empty()) return void(ranks_[g.hello.rank] = std::move(g.socket));
  answer(g.socket, true, why, monotonic_seconds() + 1);
  if (!meeting_.token.empty()) refuse(why);
  ++dropped_, objected_ = why;
}

// Ranks speak at once, so the oldest of many that say nothing are none. A rank among them comes again.
void Host::make_room() {
  if (guests_.size() < room()) return;
  const std::size_t left = guests_.size() / 2;
  dropped_ += int(guests_.size() - left);
  guests_.erase(guests_.begin(), guests_.end() - std::ptrdiff_t(left));
}

void Host::refuse(const std::string& why) {
  for (const auto& [rank, socket] : ranks_) answer(socket, true, why, monotonic_seconds() + 1);
  throw ConfigError("ranks cannot start: " + why);
}

std::string Host::missing() const {
  std::vector<std::string> out;
  for (int r = 1; r < meeting_.size && out.size() < 8; ++r)
    if (!ranks_.contains(r)) out.push_back(std::to_string(r));
  return joined(out);
}

Met Host::gather(const std::string& message) {
  while (int(ranks_.size()) < meeting_.size - 1) {
    if (monotonic_seconds() > deadline_) {
      const std::string why = format("rank {} of {} has not come within {} s{}", missing(), meeting_.size, meeting_.limit_seconds,
                                     objected_.empty() ? "" : "; one was refused: " + objected_);
      for (const auto& [rank, socket] : ranks_) answer(socket, true, why, monotonic_seconds() + 1);
      throw IoError("ranks cannot start: " + why);
    }
    wait(), admit(), hear(), make_room();
  }
  if (dropped_ > 0) log::warn("{} connections to the ranks' port were no ranks and have been closed", dropped_);
  for (const auto& [rank, socket] : ranks_)
    if (!answer(socket, false, message, deadline_)) throw IoError(format("ranks cannot start: rank {} has gone", rank));
  Met out{message, std::vector<Socket>(std::size_t(meeting_.size))};
  for (auto& [rank, socket] : ranks_) out.connections[std::size_t(rank)] = std::move(socket);
  return out;
}

// Rank 0's answer on a connection, or none if that was closed before.
std::optional<Answer> greet(const Socket& s, const Meeting& m, const std::string& agreement, double deadline) {
  Hello hello{magic, m.rank, m.size, std::int32_t(agreement.size()), {}};
  set_token(hello, m.token);
  Answer a{};
  const bool answered = send_all(s, &hello, hello_bytes, deadline) && send_all(s, agreement.data(), agreement.size(), deadline) &&
                        receive_all(s, &a, answer_bytes, deadline + 1);
  return answered ? std::optional(a) : std::nullopt;
}

Met join_meeting(const Meeting& m, const std::string& agreement) {
  const double deadline = monotonic_seconds() + m.limit_seconds;
  Socket s;
  std::optional<Answer> a;
  while (!a) {
    s = connect_to(m.host, m.port, deadline);
    if ((a = greet(s, m, agreement, deadline))) break;
    if (monotonic_seconds() + 0.1 > deadline)
      throw IoError(format("rank {}: rank 0 has closed the connection, or not answered within {} s; check that all ranks have the same {}",
                           m.rank, m.limit_seconds, token_variable));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  if (a->magic != magic || a->length < 0 || std::size_t(a->length) > most_message)
    throw IoError(
        format("rank {}: {}:{} is no rank of Octet; check MASTER_ADDR, MASTER_PORT and OCTET_PORT", m.rank, printable(m.host), m.port));
  std::string text(std::size_t(a->length), ' ');
  if (!receive_all(s, text.data(), text.size(), deadline + 1)) throw IoError(format("rank {}: rank 0's answer is cut off", m.rank));
  if (a->refused != 0) throw ConfigError("ranks cannot start: " + printable(text, most_of_a_message));
  Met out{text, {}};
  out.connections.push_back(std::move(s));
  return out;
}

void check_meeting(const Meeting& m, const std::string& agreement, const std::string& message) {
  check(m.size >= 1 && m.rank >= 0 && m.rank < m.size, "meet: rank {} of {}", m.rank, m.size);
  check(agreement.size() <= most_agreement && message.size() <= most_message,
        "meet: an agreement of {} bytes or a message of {} is too long", agreement.size(), message.size());
  if (m.token.size() > most_token)
    throw ConfigError(format("{} has {} bytes; at most {} are possible", token_variable, m.token.size(), most_token));
}

}  // namespace

Met host_meeting(const Meeting& m, const Socket& listener, const std::string& agreement, const std::string& message) {
  check_meeting(m, agreement, message);
  return Host(m, listener, agreement).gather(message);
}

Met meet(const Meeting& m, const std::string& agreement, const std::string& message) {
  check_meeting(m, agreement, message);
  if (m.size == 1) return {message, {}};
  if (m.rank > 0) return join_meeting(m, agreement);
  return host_meeting(m, listen_on(m.host, m.port), agreement, message);
}

}  // namespace octet::comm
