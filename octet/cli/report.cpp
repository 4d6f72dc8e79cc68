#include "octet/base/file.hpp"
#include "octet/base/output.hpp"
#include "octet/cli/command.hpp"
#include "octet/telemetry/report/report.hpp"
#include "octet/telemetry/report/selection.hpp"

namespace octet::cli {
namespace {

struct Options {
  std::vector<std::string> folders;
  std::string output;
};

ExitCode write(const Options& o) {
  if (!o.output.empty()) require_writable(o.output);
  const telemetry::Selection selection = telemetry::select_runs(o.folders);
  const std::string output = o.output.empty() ? o.folders.front() + "/report.html" : o.output;
  telemetry::write_report(output, selection.runs, selection.comparison ? &*selection.comparison : nullptr);
  octet::output::print("{}\n", output);
  return ExitCode::done;
}

}  // namespace

void add_report(Program& program) {
  auto o = std::make_shared<Options>();
  Command command = program.command("report", "Write one HTML page about runs, including unfinished ones",
                                    "  octet report runs/compare\n"
                                    "  octet report runs/bf16 runs/current -o both.html\n"
                                    "  octet report runs                                 all runs in the folder, including unfinished ones",
                                    Result::file);
  command.positional("folders", o->folders, "folders of runs, of a comparison, or that hold such folders");
  command.option("-o,--output", o->output, "file to write; default: report.html in the first folder");
  command.run([o] { return write(*o); });
}

}  // namespace octet::cli
