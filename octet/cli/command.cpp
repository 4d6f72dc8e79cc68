#include "octet/cli/command.hpp"

#include <csignal>

#include "octet/train/trainer.hpp"

namespace octet::cli {
namespace {

ExitCode result = ExitCode::done;

// The first signal asks for an end after the step in hand, the second ends at once.
void on_signal(int signal) {
  train::request_stop();
  std::signal(signal, SIG_DFL);
}

// A first word that is no subcommand is refused with the nearest one; CLI11 alone would only say that one is missing.
void require_known_command(const CLI::App& program, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return;
  std::vector<std::string> names;
  for (const CLI::App* command : program.get_subcommands({})) names.push_back(command->get_name());
  for (const auto& name : names)
    if (name == argv[1]) return;
  const std::string near = nearest_of(argv[1], names);
  throw ConfigError(format("there is no command `{}`{}; see octet --help", printable(argv[1]), near.empty() ? "" : "; did you mean `" + near + "`?"));
}

}  // namespace

CLI::App& add_command(CLI::App& program, const std::string& name, const std::string& what, const std::string& examples) {
  CLI::App& command = *program.add_subcommand(name, what);
  command.footer("Examples:\n" + examples);
  command.fallthrough(false);
  return command;
}

void run_command(CLI::App& command, std::function<ExitCode()> run) {
  command.callback([run = std::move(run)] { result = run(); });
}

int run_program(int argc, char** argv) {
  CLI::App program("Octet trains language models in 8-bit floating point.", "octet");
  program.require_subcommand(1);
  program.set_help_all_flag("--help-all", "help of every command");
  program.footer("Help on a command: octet COMMAND --help. Exit codes: docs/errors.md.");
  add_train(program), add_compare(program), add_tokenize(program), add_eval(program), add_generate(program);
  add_export(program), add_report(program), add_plan(program), add_doctor(program);
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
  try {
    require_known_command(program, argc, argv);
    program.parse(argc, argv);
  } catch (const CLI::Success& e) {
    return program.exit(e);
  } catch (const CLI::ParseError& e) {
    std::fprintf(stderr, "octet: %s; see octet --help\n", printable(e.what()).c_str());
    return int(ExitCode::usage);
  } catch (const Error& e) {
    std::fprintf(stderr, "octet: %s\n", e.what());
    return int(e.code());
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "octet: out of memory\n");
    return int(ExitCode::device);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "octet: %s\n", e.what());
    return int(ExitCode::internal);
  }
  return int(result);
}

}  // namespace octet::cli
