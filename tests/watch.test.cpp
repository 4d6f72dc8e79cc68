#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "octet/telemetry/sample_run.test.hpp"
#include "tests/testing/octet.hpp"

// `octet watch` and `octet top` as a person starts them.

namespace octet {
namespace {
using testing::has, testing::Scratch;

/// `octet watch` with these words on a free port, until it is destroyed.
class Watching {
 public:
  Watching(const std::string& words, const std::string& folder) {
    int ends[2];
    if (::pipe(ends) != 0) throw std::runtime_error("no pipe");
    child_ = ::fork();
    if (child_ == 0) {
      ::dup2(ends[1], 1), ::close(ends[0]), ::close(ends[1]);
      std::vector<std::string> all = testing::words_of("octet watch --port 0 " + words);
      std::vector<char*> arguments;
      for (std::string& word : all) arguments.push_back(word.data());
      arguments.push_back(nullptr);
      if (::chdir(folder.c_str()) == 0) ::execv(OCTET_PROGRAM, arguments.data());
      ::_exit(127);
    }
    ::close(ends[1]);
    for (char c; ::read(ends[0], &c, 1) == 1 && c != '\n';) address_ += c;
    ::close(ends[0]);
  }
  ~Watching() { end(SIGKILL); }
  int end(int number) {
    if (child_ <= 0) return -1;
    int status = 0;
    ::kill(child_, number), ::waitpid(child_, &status, 0);
    child_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  const std::string& address() const { return address_; }
  std::string get(const std::string& path) const {
    const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in to{};
    to.sin_family = AF_INET, to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons(std::uint16_t(std::stoi(address_.substr(address_.rfind(':') + 1))));
    std::string out;
    if (::connect(socket, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0) {
      const std::string request = "GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
      if (::send(socket, request.data(), request.size(), MSG_NOSIGNAL) > 0) {
        char block[4096];
        for (ssize_t n; (n = ::recv(socket, block, sizeof block, 0)) > 0;) out.append(block, std::size_t(n));
      }
    }
    ::close(socket);
    return out;
  }

 private:
  pid_t child_ = 0;
  std::string address_;
};

class Watch : public ::testing::Test {
 protected:
  Scratch scratch;
  void SetUp() override {
    std::filesystem::create_directories(scratch.at("runs/current"));
    testing::write_sample(scratch.at("runs/current"), testing::sample_run(testing::sample_recipes()[2], 1, {.layers = 3, .steps = 40}));
  }
};

TEST_F(Watch, ServesThePageAndDataOfRunsAndEndsBySignal) {
  Watching watching("runs", scratch.folder());
  EXPECT_TRUE(watching.address().starts_with("http://127.0.0.1:")) << watching.address();
  EXPECT_TRUE(has(watching.get("/"), "<title>octet watch</title>"));
  EXPECT_TRUE(has(watching.get("/app.js"), "new App()"));
  EXPECT_TRUE(has(watching.get("/api/runs"), "\"name\":\"current\""));
  EXPECT_TRUE(has(watching.get("/metrics"), "404"));
  EXPECT_EQ(watching.end(SIGTERM), 0);
}

TEST_F(Watch, TakesItsTokenFromAFileOrTheEnvironment) {
  const std::string token = "0123456789abcdef0123";
  scratch.write("token", token + "\n");
  {
    Watching watching("runs --token-file token", scratch.folder());
    EXPECT_TRUE(watching.address().ends_with("/#t=" + token)) << watching.address();
  }
  ::setenv("OCTET_WATCH_TOKEN", token.c_str(), 1);
  Watching watching("runs", scratch.folder());
  ::unsetenv("OCTET_WATCH_TOKEN");
  EXPECT_TRUE(watching.address().ends_with("/#t=" + token)) << watching.address();
}

TEST_F(Watch, WritesGaugesThatPromtoolAccepts) {
  Watching watching("runs --prometheus", scratch.folder());
  const std::string answer = watching.get("/metrics"), text = answer.substr(answer.find("\r\n\r\n") + 4);
  EXPECT_TRUE(has(text, "octet_step{run=\"0\",name=\"current\",recipe=\"current\"} 40\n")) << text;
  if (std::system("command -v promtool >/dev/null") != 0) GTEST_SKIP() << "promtool of Debian's package prometheus is not in PATH";
  scratch.write("metrics.txt", text);
  EXPECT_EQ(std::system(("promtool check metrics <" + scratch.at("metrics.txt")).c_str()), 0);
}

TEST_F(Watch, TopPrintsOnceWhereTheOutputIsNoTerminal) {
  const testing::Ended ended = testing::run_octet("top runs", scratch.folder());
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_TRUE(has(ended.out, "current   current   finished")) << ended.out;
  EXPECT_TRUE(has(ended.out, "step 40 of 40")) << ended.out;
  EXPECT_FALSE(has(ended.out, "\x1b")) << ended.out;
}

}  // namespace
}  // namespace octet
