#include "octet/base/output.hpp"
#include "octet/cli/command.hpp"
#include "octet/config/read.hpp"
#include "octet/config/write.hpp"
#include "octet/train/run/config/run_config.hpp"

namespace octet::cli {
namespace {

struct Options {
  std::string key, file;
};

ExitCode show(const Options& o) {
  train::RunConfig run;
  if (!o.file.empty()) config::read_toml_file(o.file, run);
  const std::string text = config::help_text(run, o.key);
  if (text.empty()) {
    std::vector<std::string> keys;
    for (const config::FieldText& field : config::describe(run)) keys.push_back(field.key);
    const std::string near = nearest_of(o.key, keys);
    throw ConfigError(format("octet config {}: no key begins with this{}; octet config lists all", printable(o.key),
                             near.empty() ? "" : ", did you mean " + near + "?"));
  }
  output::write(text);
  return ExitCode::done;
}

}  // namespace

void add_config(Program& program) {
  auto o = std::make_shared<Options>();
  Command command = program.command("config", "List the keys of a run's configuration: default, type and help",
                                    "  octet config                      all keys\n"
                                    "  octet config optim                those of the optimizer\n"
                                    "  octet config recipe --run run.toml  the values of a configuration\n");
  command.positional("key", o->key, "a key or its beginning, such as optim or optim.schedule.kind", false);
  command.option("--run", o->file, "a configuration whose values are shown instead of the defaults");
  command.run([o] { return show(*o); });
}

}  // namespace octet::cli
