#include "octet/comm/rendezvous/heartbeats.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <sys/socket.h>

#include <atomic>
#include <cerrno>
#include <memory>

#include "octet/base/clock.hpp"
#include "octet/base/host_name.hpp"
#include "octet/base/text.hpp"

namespace octet::comm {
namespace {

// A socket that takes `room` bytes and no more until it is another one.
std::atomic<int> full = -1;
std::atomic<std::ptrdiff_t> room = 0;

}  // namespace

// The linker takes this for the program's calls of the same name.
extern "C" ssize_t send(int socket, const void* bytes, size_t n, int flags) {
  static const auto next = reinterpret_cast<ssize_t (*)(int, const void*, size_t, int)>(::dlsym(RTLD_NEXT, "send"));
  if (socket != full) return next(socket, bytes, n, flags);
  if (room == 0) return errno = EAGAIN, -1;
  const ssize_t sent = next(socket, bytes, std::min(n, std::size_t(room)), flags);
  if (sent > 0) room -= sent;
  return sent;
}

namespace {

constexpr double every = 0.01;

// Connections of rank 0 to each rank, and theirs to rank 0.
struct Wires {
  explicit Wires(int ranks) : of_zero(std::size_t(ranks)), of_others(std::size_t(ranks)) {
    const Socket listener = listen_on("", 0);
    for (int r = 1; r < ranks; ++r) {
      of_others[std::size_t(r)] = connect_to("", port_of(listener), monotonic_seconds() + 5);
      while (!(of_zero[std::size_t(r)] = accept_from(listener)).ok()) std::this_thread::yield();
    }
  }
  std::vector<Socket> of_zero, of_others;

  std::vector<std::unique_ptr<Heartbeats>> start(int but = -1) {
    std::vector<std::unique_ptr<Heartbeats>> out;
    out.push_back(std::make_unique<Heartbeats>(0, std::move(of_zero), every));
    for (std::size_t r = 1; r < of_others.size(); ++r) {
      std::vector<Socket> one;
      one.push_back(std::move(of_others[r]));
      if (int(r) == but) of_others[r] = std::move(one[0]), out.push_back(nullptr);
      else out.push_back(std::make_unique<Heartbeats>(int(r), std::move(one), every));
    }
    return out;
  }
};

template <class Ask>
std::optional<Heartbeats::Absent> within(double seconds, const Ask& ask) {
  const double end = monotonic_seconds() + seconds;
  std::optional<Heartbeats::Absent> answer;
  while (!(answer = ask()) && monotonic_seconds() < end) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return answer;
}

TEST(Heartbeats, ARankWhoseProcessEndsIsNamedToAll) {
  Wires wires(4);
  const auto ranks = wires.start(2);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  for (const int r : {0, 1, 3}) EXPECT_FALSE(ranks[std::size_t(r)]->lost()) << r;
  wires.of_others[2].close();
  for (const int r : {0, 1, 3}) {
    const auto lost = within(5, [&] { return ranks[std::size_t(r)]->lost(); });
    ASSERT_TRUE(lost) << r;
    EXPECT_EQ(lost->rank, 2);
    EXPECT_NE(lost->text.find("has ended"), std::string::npos) << lost->text;
  }
}

TEST(Heartbeats, TheEndOfRank0IsSeenByTheOthers) {
  Wires wires(2);
  std::vector<Socket> one;
  one.push_back(std::move(wires.of_others[1]));
  const Heartbeats other(1, std::move(one), every);
  wires.of_zero[1].close();
  const auto lost = within(5, [&] { return other.lost(); });
  ASSERT_TRUE(lost);
  EXPECT_EQ(lost->rank, 0);
}

TEST(Heartbeats, ARankThatEndsInOrderIsNotLost) {
  Wires wires(3);
  auto ranks = wires.start();
  ranks[1].reset();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_FALSE(ranks[0]->lost());
  EXPECT_FALSE(ranks[2]->lost());
}

TEST(Heartbeats, ARankThatSendsNothingOrAnOldNumberIsLate) {
  Wires wires(3);
  const auto ranks = wires.start(2);
  const auto silent = within(5, [&] { return ranks[0]->late(0.2); });
  ASSERT_TRUE(silent);
  EXPECT_EQ(silent->rank, 2) << silent->text;
  EXPECT_NE(silent->text.find("has not run for"), std::string::npos) << silent->text;

  Wires pair(2);
  const auto both = pair.start();
  for (int i = 0; i < 5; ++i) both[0]->called();
  for (int i = 0; i < 3; ++i) both[1]->called();
  const auto behind = within(5, [&] {
    const auto late = both[0]->late(30);
    return late && late->text.find("3 calls") != std::string::npos ? late : std::nullopt;
  });
  ASSERT_TRUE(behind);
  EXPECT_EQ(behind->text, format("rank 1 on {} has made 3 calls, this rank 5", host_name()));
}

// A message as it travels.
struct Message {
  std::int32_t kind = 1, rank = 0;
  std::int64_t calls = 0;
  char host[64] = {};
};

TEST(Heartbeats, ALostRankThatDoesNotExistIsIgnored) {
  Wires wires(3);
  const auto ranks = wires.start(2);
  for (const std::int32_t rank : {7, -1, 1 << 30, 1}) {
    const Message forged{.kind = 3, .rank = rank};
    EXPECT_TRUE(send_all(wires.of_others[2], &forged, sizeof forged, monotonic_seconds() + 5));
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_FALSE(ranks[0]->lost());
  EXPECT_FALSE(ranks[1]->lost());
}

// The wire is full for half a second, from the middle of the second message on.
TEST(Heartbeats, ARankThatReadsLateGetsWholeMessages) {
  Wires wires(2);
  room = sizeof(Message) + sizeof(Message) / 2, full = wires.of_zero[1].number();
  const Heartbeats zero(0, std::move(wires.of_zero), every);
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  full = -1;
  for (int i = 0; i < 20; ++i) {
    Message m;
    ASSERT_TRUE(receive_all(wires.of_others[1], &m, sizeof m, monotonic_seconds() + 5)) << i;
    ASSERT_EQ(m.kind, 1) << "message " << i;
    ASSERT_EQ(std::string(m.host), host_name()) << "message " << i;
  }
}

TEST(Heartbeats, NonsenseOnTheWireIsNoRank) {
  Wires wires(2);
  std::vector<Socket> one;
  one.push_back(std::move(wires.of_zero[1]));
  const Heartbeats other(1, std::move(one), every);
  const std::string noise(3001, '\xff');
  EXPECT_TRUE(send_all(wires.of_others[1], noise.data(), noise.size(), monotonic_seconds() + 5));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(other.lost());
}

}  // namespace
}  // namespace octet::comm
