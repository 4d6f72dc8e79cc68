#include "octet/base/file.hpp"
#include "octet/base/output.hpp"
#include "octet/cli/command.hpp"
#include "octet/telemetry/report/report.hpp"
#include "octet/telemetry/report/selection.hpp"

namespace octet::cli {
namespace {

struct Options {
  std::vector<std::string> folders;
  std::string output, svg, watch = telemetry::default_watch_address();
};

ExitCode write(const Options& o) {
  if (!o.watch.empty() && !o.watch.starts_with("http://") && !o.watch.starts_with("https://"))
    throw ConfigError(format("--watch {}: must be an address such as {}", printable(o.watch), telemetry::default_watch_address()));
  for (const std::string& file : {o.output, o.svg})
    if (!file.empty()) require_writable(file);
  const telemetry::Selection selection = telemetry::select_runs(o.folders);
  const telemetry::Comparison* comparison = selection.comparison ? &*selection.comparison : nullptr;
  if (!o.svg.empty()) {
    write_file(o.svg, telemetry::report_svg(selection.runs, comparison));
    octet::output::print("{}\n", o.svg);
    if (o.output.empty()) return ExitCode::done;
  }
  const std::string own = o.folders.front() + "/report.html";
  if (o.output.empty()) telemetry::write_report(own, selection.runs, comparison, o.watch);
  else write_file(o.output, telemetry::report_html(selection.runs, comparison, o.watch));
  octet::output::print("{}\n", o.output.empty() ? own : o.output);
  return ExitCode::done;
}

}  // namespace

void add_report(Program& program) {
  auto o = std::make_shared<Options>();
  Command command =
      program.command("report", "Write one HTML page about runs, including unfinished ones",
                      "  octet report runs/compare\n"
                      "  octet report runs/bf16 runs/current -o both.html\n"
                      "  octet report runs/current --svg run.svg           a picture of a run: loss, gradient norm, headroom\n"
                      "  octet report runs                                 all runs in the folder, including unfinished ones",
                      Result::file);
  command.positional("folders", o->folders, "folders of runs, of a comparison, or that hold such folders");
  command.option("-o,--output", o->output, "file to write; default: report.html in the first folder");
  command.option("--svg", o->svg,
                 "SVG file to write instead. Of a run: loss with alerts, gradient norm, headroom; of a comparison: loss, difference from "
                 "the baseline");
  command.option("--watch", o->watch, "address of octet watch, to which incidents link; empty: no links", {.may_be_empty = true});
  command.run([o] { return write(*o); });
}

}  // namespace octet::cli
