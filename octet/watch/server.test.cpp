#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "octet/base/clock.hpp"
#include "octet/base/descriptor.hpp"
#include "octet/telemetry/event_line.hpp"
#include "octet/telemetry/metric.hpp"
#include "octet/telemetry/sample_run.test.hpp"
#include "octet/watch/routes.hpp"
#include "octet/watch/server.hpp"
#include "tests/testing/scratch.hpp"

// The server as its clients see it, through real sockets.

namespace octet::watch {
namespace {

constexpr double patience = 5;  // seconds
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr double most_growth = 4e9;  // a sanitizer keeps freed memory
#else
constexpr double most_growth = 48e6;  // bytes
#endif
const std::string token = "a+secret/of-more%than=sixteen";

/// A connection to 127.0.0.1.
class Client {
 public:
  explicit Client(std::uint16_t port, int receive_bytes = 0) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    if (receive_bytes > 0) ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof receive_bytes);
    sockaddr_in to{};
    to.sin_family = AF_INET, to.sin_port = htons(port), to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(socket_, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0;
  }
  Client(Client&& from) noexcept : socket_(std::exchange(from.socket_, -1)), connected_(from.connected_) {}
  ~Client() {
    if (socket_ >= 0) ::close(socket_);
  }
  bool connected() const { return connected_; }
  /// False where the other end closed.
  bool send(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t n = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      bytes.remove_prefix(std::size_t(n));
    }
    return true;
  }
  /// Bytes until `end` is among them, the other end closes, or time is up.
  std::string receive(std::string_view end = "", double seconds = patience) const {
    std::string out;
    char block[1 << 14];
    for (const double until = monotonic_seconds() + seconds; monotonic_seconds() < until;) {
      pollfd ready{.fd = socket_, .events = POLLIN, .revents = 0};
      if (::poll(&ready, 1, 50) <= 0) continue;
      const ssize_t n = ::recv(socket_, block, sizeof block, 0);
      if (n <= 0) break;
      out.append(block, std::size_t(n));
      if (!end.empty() && out.find(end) != std::string::npos) break;
    }
    return out;
  }

 private:
  int socket_;
  bool connected_ = false;
};

double resident_bytes() {
  double pages = 0, skip = 0;
  std::ifstream("/proc/self/statm") >> skip >> pages;
  return pages * double(::sysconf(_SC_PAGESIZE));
}

class Servers : public ::testing::Test {
 protected:
  testing::Scratch scratch;
  std::string folder = scratch.at("run");
  std::unique_ptr<Runs> runs;
  std::unique_ptr<Server> server;
  std::thread thread;

  void start(ServerOptions options = {}, const std::string& watched = "") {
    std::filesystem::create_directories(folder);
    testing::write_sample(folder, testing::sample_run(testing::sample_recipes()[1], 1, {.layers = 3, .steps = 60}));
    runs = std::make_unique<Runs>(std::vector<std::string>{watched.empty() ? folder : watched});
    server = std::make_unique<Server>(*runs, options);
    thread = std::thread([this] { server->run(); });
  }
  void TearDown() override {
    if (server) server->stop();
    if (thread.joinable()) thread.join();
  }
  std::string ask(const std::string& bytes) {
    const Client client(server->port());
    client.send(bytes);
    return client.receive();
  }
  std::string get(const std::string& path, const std::string& headers = "", const std::string& host = "localhost") {
    return ask("GET " + path + " HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n" + headers + "\r\n");
  }
  static int status(const std::string& answer) { return answer.starts_with("HTTP/1.1 ") ? std::stoi(answer.substr(9)) : 0; }
};

TEST_F(Servers, AnswerEveryRouteWithHeadersThatKeepOtherPagesOut) {
  start({.prometheus = true});
  for (const std::string& path : all_routes()) {
    if (path.ends_with("/events")) continue;
    if (path.ends_with("/report")) scratch.write("run/report.html", "");
    const std::string answer = get(path == "/api/compare" ? path + "?runs=0" : path);
    EXPECT_EQ(status(answer), 200) << path << answer.substr(0, 400);
    for (const char* header : {"Content-Security-Policy: default-src 'none'", "nosniff", "no-referrer", "same-origin", "no-store"})
      EXPECT_NE(answer.find(header), std::string::npos) << path << ": " << header;
    EXPECT_EQ(answer.find("Access-Control"), std::string::npos);
  }
  EXPECT_NE(get("/api/runs").find("\"condition\":\"finished\""), std::string::npos);
}

TEST_F(Servers, ShowTheReportOfARunWithoutItsScripts) {
  start();
  EXPECT_EQ(status(get("/api/runs/0/report")), 404);
  scratch.write("run/report.html", "<script>1</script>");
  const std::string answer = get("/api/runs/0/report");
  EXPECT_NE(answer.find("Content-Type: text/html"), std::string::npos);
  EXPECT_NE(answer.find("default-src 'none'; style-src 'unsafe-inline'; sandbox;"), std::string::npos) << answer;
  EXPECT_TRUE(answer.ends_with("\r\n\r\n<script>1</script>"));
  EXPECT_NE(get("/api/runs/0/summary").find("\"report\":true"), std::string::npos);
  std::filesystem::remove(scratch.at("run/report.html"));
  std::filesystem::create_directory(scratch.at("run/report.html"));
  EXPECT_EQ(status(get("/api/runs/0/report")), 500);
}

TEST_F(Servers, FollowNoLinksInTheFoldersOfRuns) {
  const std::string secret = "{\"event\":\"incident\",\"step\":1,\"time\":0,\"kind\":\"x\",\"path\":\"\",\"text\":\"secret\"}\n";
  folder = scratch.at("shared/cmp/run");
  scratch.write("shared/cmp/compare.json", "{}");
  scratch.write("secret", secret), scratch.write("private/run.json", "{}");
  std::filesystem::create_directory_symlink(scratch.at("private"), scratch.at("shared/link"));
  std::filesystem::create_directories(folder);
  const auto link = [&](const std::string& name) {
    std::filesystem::remove(scratch.at(name));
    std::filesystem::create_symlink(scratch.at("secret"), scratch.at(name));
  };
  const auto is_hidden = [&](const std::string& path) {
    const std::string answer = get(path);
    EXPECT_EQ(answer.find("secret"), std::string::npos) << path << answer;
    return answer;
  };
  start({}, scratch.at("shared"));
  EXPECT_EQ(runs->size(), 1u) << "a link to a folder is no folder of runs";
  // Folders become links after the run was found.
  std::filesystem::rename(scratch.at("shared/cmp"), scratch.at("moved"));
  std::filesystem::create_directory_symlink(scratch.at("moved"), scratch.at("shared/cmp"));
  std::ofstream(scratch.at("moved/run/run.json"), std::ios::app) << "\n";  // so that it is read again
  EXPECT_NE(get("/api/runs").find("symbolic link is not followed"), std::string::npos) << get("/api/runs");
  std::filesystem::remove(scratch.at("shared/cmp"));
  std::filesystem::rename(scratch.at("moved"), scratch.at("shared/cmp"));
  EXPECT_EQ(get("/api/runs").find("symbolic link"), std::string::npos);
  link("shared/cmp/report.html");
  EXPECT_EQ(status(is_hidden("/api/runs/0/report")), 500);
  link("shared/cmp/run/report.html");
  EXPECT_NE(is_hidden("/api/runs/0/report").find("symbolic link is not followed"), std::string::npos);
  for (const char* name : {"metrics.jsonl", "run.json", ".lock"}) {
    link(std::string("shared/cmp/run/") + name);
    for (const char* path : {"/api/runs", "/api/runs/0/summary", "/api/runs/0/incidents", "/api/runs/0/incidents?incident=0"})
      is_hidden(path);
  }
}

TEST_F(Servers, RefuseEveryRouteToOtherHostsOriginsMethodsAndWithoutTheToken) {
  start({.token = token, .prometheus = true});
  const std::string right = "Authorization: Bearer " + token + "\r\n";
  for (const std::string& path : all_routes()) {
    const bool data = path.starts_with("/api/") || path == "/metrics";
    EXPECT_EQ(status(get(path, right, "evil.example")), 403) << path;
    EXPECT_EQ(status(get(path, right + "Host: localhost\r\n")), 403) << path;
    EXPECT_EQ(status(get(path, right + "Origin: https://evil.example\r\n")), 403) << path;
    EXPECT_EQ(status(get(path, right + "Origin: null\r\n")), 403) << path;
    if (data) {
      EXPECT_EQ(status(get(path)), 401) << path;
      EXPECT_EQ(status(get(path, "Authorization: Bearer " + token.substr(0, 16) + "\r\n")), 401) << path;
      EXPECT_EQ(status(get(path + "?token=" + "secret")), 401) << path;
    }
    for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"})
      EXPECT_EQ(status(ask(std::string(method) + " " + path + " HTTP/1.1\r\nHost: localhost\r\n" + right + "\r\n")), 405) << method << path;
  }
  EXPECT_EQ(status(get("/api/runs", right + "Origin: http://localhost:7000\r\n", "localhost:7000")), 200);
}

TEST_F(Servers, RefusePathsThatAreNoRoutes) {
  start();
  for (const char* path : {"/../../etc/passwd", "/%2e%2e/etc/passwd", "/..%252fetc", "//etc/passwd", "/api/runs/0/../../run.json",
                           "/api/runs/1/summary", "/api/runs/-1/summary", "/api/runs/99999999999999999999/summary", "/run.json",
                           "/api/runs/0/", "/api/runs/0x0/heat", "/page/page.html", "/metrics", "/api/runs/0/summary%00"})
    EXPECT_EQ(status(get(path)), 404) << path;
  EXPECT_EQ(status(get("http://evil.example/api/runs")), 404);
  for (const char* query : {"points=1e18", "points=-3", "points=", "from=NaN", "points=99999999999999999999"})
    EXPECT_EQ(status(get(std::string("/api/runs/0/series?") + query)), 400) << query;
  EXPECT_EQ(status(get("/api/runs/0/heat?measure=x")), 400);
  EXPECT_EQ(status(get("/api/runs/0/series?points=3&points=4")), 404);
}

TEST_F(Servers, AnswerHeadWithoutBodyAndSeveralRequestsOnOneConnection) {
  start();
  const Client client(server->port());
  client.send("HEAD /api/runs HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const std::string head = client.receive("\r\n\r\n");
  EXPECT_EQ(status(head), 200);
  EXPECT_TRUE(head.ends_with("\r\n\r\n"));
  client.send("GET /api/runs HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_NE(client.receive("]}").find("\"runs\":[{"), std::string::npos);
}

TEST_F(Servers, SendANewLineWithinASecond) {
  start();
  const Client client(server->port());
  client.send("GET /api/runs/0/events HTTP/1.1\r\nHost: localhost\r\n\r\n");
  ASSERT_NE(client.receive("event: condition").find("text/event-stream"), std::string::npos);
  const double begin = monotonic_seconds();
  std::ofstream(folder + "/metrics.jsonl", std::ios::app) << telemetry::event_line(telemetry::StepEvent{.step = 61, .loss = 2.125}) << "\n";
  const std::string news = client.receive("2.125", 3);
  EXPECT_NE(news.find("event: event\ndata: {\"event\":\"step\",\"step\":61"), std::string::npos) << news;
  EXPECT_LT(monotonic_seconds() - begin, 1);
}

TEST_F(Servers, KeepAnEventOnOneLineWhateverBlanksItsRunHas) {
  start();
  const Client client(server->port());
  client.send("GET /api/runs/0/events HTTP/1.1\r\nHost: localhost\r\n\r\n");
  ASSERT_NE(client.receive("event: condition").find("text/event-stream"), std::string::npos);
  std::string line = telemetry::event_line(telemetry::StepEvent{.step = 61, .loss = 2.125});
  line.insert(1, "\revent: forged\r");
  line.insert(1, "\r\r");
  line.erase(line.find("event: forged"), 13);
  std::ofstream(folder + "/metrics.jsonl", std::ios::app) << line << "\n";
  const std::string news = client.receive("2.125", 3);
  const std::size_t data = news.find("data: {");
  ASSERT_NE(data, std::string::npos) << news;
  EXPECT_EQ(news.substr(data, news.find("2.125") - data).find('\r'), std::string::npos) << news;
}

TEST_F(Servers, RefuseHostileRequestsWithFlatMemory) {
  start({.limits = {.header_seconds = 0.5, .write_seconds = 0.5}});
  for (const char* measure : {"", "?measure=spread", "?measure=lossy"})
    EXPECT_EQ(status(get(std::string("/api/runs/0/heat") + measure)), 200) << measure;
  const double before = resident_bytes();
  const std::string block(1 << 16, 'x');
  {  // a body of 400 MiB, announced and in chunks
    EXPECT_EQ(status(ask("GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 419430400\r\n\r\n")), 413);
    const Client client(server->port());
    client.send("GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n19000000\r\n");
    int sent = 0;
    while (sent < 6400 && client.send(block)) ++sent;
    EXPECT_LT(sent, 640) << "the connection must be closed early";
  }
  EXPECT_EQ(status(ask("GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n")) / 100, 4);
  {  // an endless header, in one line and in many
    const Client client(server->port());
    client.send("GET / HTTP/1.1\r\nX: ");
    int sent = 0;
    while (sent < 1000 && client.send(block)) ++sent;
    EXPECT_LT(sent, 200);
    std::string many = "GET / HTTP/1.1\r\nHost: localhost\r\n";
    for (int i = 0; i < 20000; ++i) many += "A: b\r\n";
    const int answer = status(ask(many));
    EXPECT_TRUE(answer == 431 || answer == 0) << answer;  // 0: the answer was lost with the bytes that were not read
  }
  {  // a reader that takes nothing loses its connection
    const Client slow(server->port(), 2048);
    for (int i = 0; i < 400; ++i)
      if (!slow.send("GET /api/runs/0/heat?columns=400 HTTP/1.1\r\nHost: localhost\r\n\r\n")) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(800));
    EXPECT_LT(slow.receive("", 2).size(), std::size_t(8) << 20);
  }
  EXPECT_EQ(status(get("/api/runs")), 200);
  EXPECT_LT(resident_bytes() - before, most_growth);
}

TEST_F(Servers, EndureAThousandConnectionsAndRecover) {
  start({.limits = {.header_seconds = 0.5}});
  EXPECT_EQ(status(get("/api/runs")), 200);
  const double before = resident_bytes();
  std::vector<Client> all;
  int refused = 0;
  for (int i = 0; i < 1000; ++i) {
    all.emplace_back(server->port());
    if (!all.back().connected()) continue;
    if (i != 200) all.back().send("GET /");
    else refused = status(all.back().receive("\r\n\r\n", 1));
  }
  EXPECT_EQ(refused, 503);
  EXPECT_LT(resident_bytes() - before, most_growth);
  const double begin = monotonic_seconds();
  int answer = 0;
  while (answer != 200 && monotonic_seconds() - begin < patience) answer = status(get("/api/runs"));
  EXPECT_EQ(answer, 200);
}

TEST_F(Servers, GiveTheirPlacesInTurn) {
  start({.limits = {.connections = 4, .streams = 2, .share_seconds = 0.3, .stream_seconds = 0.3}});
  const std::string request = "GET /api/runs HTTP/1.1\r\nHost: localhost\r\n\r\n";
  std::vector<Client> all;
  for (int i = 0; i < 4; ++i) {  // all places are taken by clients that keep their connection
    all.emplace_back(server->port());
    all.back().send(request);
    ASSERT_EQ(status(all.back().receive("]}")), 200);
  }
  EXPECT_EQ(status(get("/api/runs")), 200);
  EXPECT_EQ(all[0].receive("", 0.2), "") << "the one that has waited longest gave its place";
  for (int i = 1; i < 4; ++i) {
    all[std::size_t(i)].send(request);
    EXPECT_EQ(status(all[std::size_t(i)].receive("]}")), 200) << i;
  }
  all.clear();
  for (int i = 0; i < 4; ++i) all.emplace_back(server->port()), all.back().send("GET /");
  EXPECT_EQ(status(get("/api/runs")), 503) << "they may still be about to ask";
  std::this_thread::sleep_for(std::chrono::milliseconds(350));
  EXPECT_EQ(status(get("/api/runs")), 200);
  all.clear();
  const auto stream = [&] {
    all.emplace_back(server->port());
    all.back().send("GET /api/runs/0/events HTTP/1.1\r\nHost: localhost\r\n\r\n");
    return status(all.back().receive("\r\n\r\n"));
  };
  EXPECT_EQ(stream(), 200);
  EXPECT_EQ(stream(), 200);
  EXPECT_EQ(stream(), 503);
  std::this_thread::sleep_for(std::chrono::milliseconds(350));
  EXPECT_EQ(stream(), 200);
}

TEST_F(Servers, ListenElsewhereOnlyWithAToken) {
  std::filesystem::create_directories(folder);
  Runs none({folder});
  EXPECT_THROW(Server(none, {.host = "0.0.0.0"}), ConfigError);
  EXPECT_THROW(Server(none, {.host = "0.0.0.0", .token = "short"}), ConfigError);
  EXPECT_THROW(Server(none, {.host = "example.org"}), ConfigError);
  const Server open(none, {.host = "0.0.0.0", .token = token});
  EXPECT_TRUE(open.address().ends_with("/#t=a%2Bsecret%2Fof-more%25than%3Dsixteen")) << open.address();
  EXPECT_THROW(Server(none, {.token = "short"}), ConfigError);
  EXPECT_THROW(Server(none, {.token = token + " and more"}), ConfigError);
  EXPECT_THROW(Server(none, {.port = open.port()}), IoError);
}

TEST_F(Servers, PrometheusTextEscapesLabels) {
  folder = scratch.at("a\"} evil 1\\");
  start({.prometheus = true});
  const std::string text = get("/metrics");
  EXPECT_NE(text.find("octet_step{run=\"0\",name=\"a\\\"} evil 1\\\\\",recipe="), std::string::npos) << text.substr(0, 2000);
  EXPECT_NE(text.find("condition=\"finished\"} 1\n"), std::string::npos);
}

TEST_F(Servers, PrometheusTextAndThePageHaveTheTableOfMetrics) {
  start({.prometheus = true});
  const std::string text = get("/metrics"), words = get("/api/metrics");
  for (const telemetry::Metric& m : telemetry::metrics()) {
    EXPECT_EQ(*m.gauge != 0, text.find(format("# HELP {} {}\n", m.gauge, m.meaning)) != std::string::npos) << m.gauge;
    EXPECT_TRUE(*m.name == 0 || words.find(format("{\"name\":\"{}\",\"title\":\"{}\"", m.name, m.title)) != std::string::npos) << m.name;
  }
}

}  // namespace
}  // namespace octet::watch
