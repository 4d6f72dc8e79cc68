#include "octet/comm/rendezvous/rendezvous.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "octet/base/clock.hpp"
#include "octet/base/error.hpp"
#include "octet/base/host_name.hpp"
#include "octet/base/log.hpp"
#include "octet/comm/rendezvous/socket.hpp"

namespace octet::comm {
namespace {

// Ranks of one meeting as threads, each with its own result or error.
struct Party {
  explicit Party(int size, double limit = 20)
      : listener(listen_on("", 0)), size(size), limit(limit), messages(std::size_t(size)), errors(std::size_t(size)) {}
  ~Party() { ranks.clear(); }

  Meeting meeting(int rank) const { return {rank, size, "", port_of(listener), limit, token}; }
  void start(int rank, std::string agreement = "same") {
    ranks.emplace_back([this, rank, agreement] {
      try {
        messages[std::size_t(rank)] =
            (rank == 0 ? host_meeting(meeting(0), listener, agreement, "the id") : meet(meeting(rank), agreement, "")).message;
      } catch (const Error& e) {
        errors[std::size_t(rank)] = e.what();
      }
    });
  }
  void join() { ranks.clear(); }
  Socket stranger() const { return connect_to("", port_of(listener), monotonic_seconds() + 5); }

  Socket listener;
  int size;
  double limit;
  std::string token = "secret";
  std::vector<std::string> messages, errors;
  std::vector<std::jthread> ranks;
};

class Quiet : public ::testing::Test {
 protected:
  void SetUp() override { log::set_quiet(true); }
  void TearDown() override { log::set_quiet(false); }
};
using Rendezvous = Quiet;

bool has(const std::string& text, std::string_view part) { return text.find(part) != text.npos; }

TEST_F(Rendezvous, AllRanksGetTheMessageOfRank0InAnyOrder) {
  Party p(5);
  for (const int rank : {3, 1, 0, 4, 2}) p.start(rank);
  p.join();
  for (int r = 0; r < 5; ++r) EXPECT_EQ(p.messages[std::size_t(r)], "the id") << p.errors[std::size_t(r)];
}

TEST_F(Rendezvous, OneRankNeedsNoPort) { EXPECT_EQ(meet({0, 1, "", 0, 1}, "x", "alone").message, "alone"); }

TEST_F(Rendezvous, AnotherConfigurationIsRefusedByAll) {
  Party p(3);
  p.start(1);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  p.start(0), p.start(2, "other");
  p.join();
  for (const std::string& e : p.errors) EXPECT_TRUE(has(e, "rank 2 has another configuration") || has(e, "rank 1 has another")) << e;
}

TEST_F(Rendezvous, ARankThatComesTwiceIsRefused) {
  Party p(3);
  p.start(0), p.start(1);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  std::string error;
  try {
    meet(p.meeting(1), "same", "");
  } catch (const ConfigError& e) {
    error = e.what();
  }
  p.join();
  EXPECT_TRUE(has(error, "two processes were started as rank 1")) << error;
  EXPECT_TRUE(has(p.errors[0], "two processes were started as rank 1")) << p.errors[0];
}

TEST_F(Rendezvous, AnotherNumberOfRanksIsRefused) {
  Party p(2);
  p.start(0);
  Meeting other = p.meeting(1);
  other.size = 4;
  EXPECT_THROW(meet(other, "same", ""), ConfigError);
  p.join();
  EXPECT_TRUE(has(p.errors[0], "as one of 4 ranks")) << p.errors[0];
}

TEST_F(Rendezvous, AMissingRankIsNamedWithinTheLimit) {
  Party p(4, 0.4);
  const double start = monotonic_seconds();
  p.start(0), p.start(2);
  p.join();
  EXPECT_TRUE(has(p.errors[0], "rank 1, 3 of 4 has not come within 0.4 s")) << p.errors[0];
  EXPECT_FALSE(p.errors[2].empty());
  EXPECT_LT(monotonic_seconds() - start, 5);
}

TEST_F(Rendezvous, NobodyThatListensIsAnErrorWithinTheLimit) {
  int port = 0;
  {
    const Socket s = listen_on("", 0);
    port = port_of(s);
  }
  EXPECT_THROW(meet({1, 2, "", port, 0.2}, "", ""), IoError);
  EXPECT_THROW(meet({1, 2, "no-such-host.invalid", port, 0.2}, "", ""), IoError);
}

TEST_F(Rendezvous, ATakenPortIsAnErrorThatNamesIt) {
  const Socket s = listen_on("", 0);
  try {
    meet({0, 2, "", port_of(s), 1}, "", "");
    FAIL();
  } catch (const IoError& e) {
    EXPECT_TRUE(has(e.what(), std::to_string(port_of(s)))) << e.what();
  }
}

// Connections that say nothing, nonsense, half of a hello, a length out of range, a flood; and more of them than there is room for.
TEST_F(Rendezvous, HostilePeersDoNotDisturbTheRanks) {
  Party p(3);
  std::vector<Socket> strangers;
  const auto say = [&](const void* bytes, std::size_t n) {
    strangers.push_back(p.stranger());
    send_all(strangers.back(), bytes, n, monotonic_seconds() + 1);
  };
  p.start(0);
  for (int i = 0; i < 40; ++i) strangers.push_back(p.stranger());
  say("GET / HTTP/1.1\r\nHost: x\r\n\r\n", 27);
  struct {
    std::uint64_t magic = 0x32307A7674636F6Fu;
    std::int32_t rank = 1, size = 3, length = 4;
    char token[64] = "secret";
  } hello;
  say(&hello, 7);
  hello.length = 1 << 30, say(&hello, 84);
  hello.length = -1, say(&hello, 84);
  hello.length = 4, hello.rank = -5, say(&hello, 84);
  const std::string flood(1 << 20, 'x');
  strangers.push_back(p.stranger());
  send_all(strangers.back(), flood.data(), flood.size(), monotonic_seconds() + 0.2);
  { const Socket gone = p.stranger(); }
  p.start(1), p.start(2);
  p.join();
  for (const std::string& m : p.messages) EXPECT_EQ(m, "the id");
}

TEST_F(Rendezvous, AStrangerWithoutTheTokenIsDroppedAndGetsNothing) {
  Party p(2);
  p.start(0);
  Meeting stranger = p.meeting(1), other_size = p.meeting(1);
  stranger.token = "guess", stranger.limit_seconds = 0.3;
  EXPECT_THROW(meet(stranger, "same", ""), IoError);
  other_size.token = "", other_size.size = 4, other_size.limit_seconds = 0.3;
  EXPECT_THROW(meet(other_size, "same", ""), IoError);
  p.start(1);
  p.join();
  for (const std::string& m : p.messages) EXPECT_EQ(m, "the id");
}

TEST_F(Rendezvous, WithoutATokenAWrongHelloIsRefusedAndEndsNothing) {
  Party p(2);
  p.token = "";
  p.start(0);
  Meeting other_size = p.meeting(1);
  other_size.size = 4;
  EXPECT_THROW(meet(other_size, "same", ""), ConfigError);
  p.start(1);
  p.join();
  for (const std::string& m : p.messages) EXPECT_EQ(m, "the id");
}

TEST_F(Rendezvous, ManySilentConnectionsDoNotOutlastTheLimit) {
  Party p(2, 4);
  std::vector<Socket> silent;
  for (int i = 0; i < 300; ++i) silent.push_back(p.stranger());
  p.start(0), p.start(1);
  p.join();
  for (int r = 0; r < 2; ++r) EXPECT_EQ(p.messages[std::size_t(r)], "the id") << p.errors[std::size_t(r)];
}

TEST_F(Rendezvous, ATokenThatIsTooLongIsRefused) {
  EXPECT_THROW(meet({.rank = 0, .size = 2, .port = 0, .limit_seconds = 1, .token = std::string(65, 'x')}, "", ""), ConfigError);
}

// Debian gives a host's own name to 127.0.1.1, others know it by its address.
TEST_F(Rendezvous, RankZeroIsReachedByItsAddressWhereItsOwnNameIsOfLoopback) {
  Socket listener;
  try {
    listener = listen_on(host_name(), 0);
  } catch (const IoError&) {
    GTEST_SKIP() << "this host does not know its own name";
  }
  sockaddr_storage a{};
  socklen_t size = sizeof a;
  ASSERT_EQ(getsockname(listener.number(), reinterpret_cast<sockaddr*>(&a), &size), 0);
  const auto* four = reinterpret_cast<const sockaddr_in*>(&a);
  const auto* six = reinterpret_cast<const sockaddr_in6*>(&a);
  EXPECT_FALSE(a.ss_family == AF_INET && ntohl(four->sin_addr.s_addr) >> 24 == 127);
  EXPECT_FALSE(a.ss_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&six->sin6_addr));
  EXPECT_TRUE(connect_to("127.0.0.1", port_of(listener), monotonic_seconds() + 5).ok());
}

// A server that is no rank 0.
TEST_F(Rendezvous, ARankDoesNotBelieveAnyServer) {
  for (const std::string& answer : {std::string("HTTP/1.1 400 Bad Request\r\n\r\n"), std::string(16, '\xff'), std::string("short")}) {
    const Socket listener = listen_on("", 0);
    const std::jthread server([&] {
      Socket s;
      while (!s.ok()) s = accept_from(listener), std::this_thread::yield();
      char hello[22];
      receive_all(s, hello, sizeof hello, monotonic_seconds() + 5);
      send_all(s, answer.data(), answer.size(), monotonic_seconds() + 1);
    });
    EXPECT_THROW(meet({1, 2, "", port_of(listener), 1}, "xy", ""), IoError);
  }
}

}  // namespace
}  // namespace octet::comm
