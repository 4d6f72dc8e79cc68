#include <cstdlib>

#include "octet/base/log.hpp"
#include "octet/base/output.hpp"
#include "octet/base/regular_file.hpp"
#include "octet/cli/command.hpp"
#include "octet/telemetry/run_link.hpp"
#include "octet/watch/page.hpp"
#include "octet/watch/server.hpp"

namespace octet::cli {
namespace {

struct Options {
  std::vector<std::string> folders;
  std::string host = "127.0.0.1", token, token_file;
  std::int64_t port = telemetry::watch_port;
  bool prometheus = false;
};

constexpr const char* token_variable = "OCTET_WATCH_TOKEN";
constexpr std::size_t most_token_bytes = 4096;

std::string token_in(const std::string& path) {
  const RegularFile file = RegularFile::open(path);
  std::string token;
  file.read(path, 0, most_token_bytes, token);
  while (!token.empty() && (token.back() == '\n' || token.back() == '\r')) token.pop_back();
  if (token.empty())
    throw ConfigError(format("--token-file {}: the file is empty; write a secret of at least 16 characters", printable(path)));
  return token;
}

// Of the command line, the file, or else the environment, which other users do not see.
std::string token_of(const Options& o) {
  if (!o.token.empty() && !o.token_file.empty()) throw ConfigError("--token and --token-file are both given; leave one out");
  if (!o.token_file.empty()) return token_in(o.token_file);
  const char* variable = std::getenv(token_variable);
  return !o.token.empty() || variable == nullptr ? o.token : variable;
}

ExitCode serve(const Options& o) {
  watch::Runs runs(o.folders);
  watch::Server server(runs, {.host = o.host, .port = std::uint16_t(o.port), .token = token_of(o), .prometheus = o.prometheus});
  if (!watch::has_curves())
    log::warn(
        "this octet was built without dygraphs, so the page has no curves: install the Debian package libjs-dygraphs and build again");
  output::print("{}\n", server.address());
  output::finish();
  log::info("{} {}; Ctrl-C ends this process, the runs continue", runs.size(), runs.size() == 1 ? "run" : "runs");
  server.run();
  return ExitCode::done;
}

}  // namespace

void add_watch(Program& program) {
  auto o = std::make_shared<Options>();
  Command command = program.command("watch", "Serve a live page about runs, from their folders alone",
                                    "  octet watch runs                                  all runs in the folder, also later ones\n"
                                    "  octet watch runs/current /data/other/run --port 7000\n"
                                    "  octet watch runs --prometheus                     and gauges at /metrics\n"
                                    "  ssh -L 6160:127.0.0.1:6160 NODE octet watch runs  from another machine");
  command.positional("folders", o->folders, "folders of runs, of a comparison, or that hold such folders");
  command.option("--port", o->port, "port to listen on; 0: a free one", {.at_least = 0, .at_most = 65535});
  command.option("--host", o->host, "address to listen on; one that other machines reach needs --token");
  command.option("--token", o->token, "secret that requests for data must have; the printed address contains it. Other users see it");
  command.option("--token-file", o->token_file, format("file with that secret; without both options, the variable {}", token_variable));
  command.flag("--prometheus", o->prometheus, "answer /metrics with the gauges of all runs, for Prometheus");
  command.run([o] { return serve(*o); });
}

}  // namespace octet::cli
