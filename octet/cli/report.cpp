#include <filesystem>

#include "octet/cli/command.hpp"
#include "octet/telemetry/report/report.hpp"
#include "octet/telemetry/run_record.hpp"

namespace octet::cli {
namespace {

struct Options {
  std::vector<std::string> folders;
  std::string output;
};

// The runs of a comparison's folder, or the run itself.
ExitCode write(const Options& o) {
  std::vector<RunRecord> runs;
  std::optional<Comparison> comparison;
  for (const auto& folder : o.folders) {
    if (std::filesystem::exists(folder + "/compare.json")) {
      comparison = read_comparison(folder + "/compare.json");
      for (const auto& run : comparison->runs) runs.push_back(read_run(folder + "/" + run));
    } else {
      if (!std::filesystem::exists(folder + "/run.json"))
        throw ConfigError(format("{}: holds neither run.json nor compare.json; name the folder of a run or of a comparison", printable(folder)));
      runs.push_back(read_run(folder));
    }
  }
  if (o.folders.size() > 1) comparison.reset();
  const std::string output = o.output.empty() ? o.folders.front() + "/report.html" : o.output;
  write_report(output, runs, comparison ? &*comparison : nullptr);
  std::printf("%s\n", output.c_str());
  return ExitCode::done;
}

}  // namespace

void add_report(Program& program) {
  auto o = std::make_shared<Options>();
  Command command = program.command("report", "Write one HTML page about runs, also unfinished ones",
                                  "  octet report runs/compare\n"
                                  "  octet report runs/bf16 runs/current -o both.html");
  command.positional("folders", o->folders, "folders of runs or of one comparison");
  command.option("-o,--output", o->output, "file to write; default: report.html in the first folder");
  command.run([o] { return write(*o); });
}

}  // namespace octet::cli
