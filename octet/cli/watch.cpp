#include "octet/base/log.hpp"
#include "octet/base/output.hpp"
#include "octet/cli/command.hpp"
#include "octet/watch/page.hpp"
#include "octet/watch/server.hpp"

namespace octet::cli {
namespace {

struct Options {
  std::vector<std::string> folders;
  std::string host = "127.0.0.1", token;
  std::int64_t port = 6160;
  bool prometheus = false;
};

ExitCode serve(const Options& o) {
  watch::Runs runs(o.folders);
  watch::Server server(runs, {.host = o.host, .port = std::uint16_t(o.port), .token = o.token, .prometheus = o.prometheus});
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
  command.option("--token", o->token, "secret that requests for data must have; the printed address contains it");
  command.flag("--prometheus", o->prometheus, "answer /metrics with the gauges of all runs, for Prometheus");
  command.run([o] { return serve(*o); });
}

}  // namespace octet::cli
