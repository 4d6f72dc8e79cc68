#include "octet/cli/command.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <new>
#include <system_error>

#include "octet/base/output.hpp"
#include "octet/config/nearest_key.hpp"
#include "octet/train/run/config/run_config.hpp"

namespace octet::cli {
namespace {

ExitCode result = ExitCode::done;

// The error of an option's text or path, or "".
std::string empty_error(const std::string& text) { return text.empty() ? "must not be empty" : ""; }

// A first word that is no subcommand is refused with the nearest one; CLI11 alone would only say that one is missing.
void require_known_command(const CLI::App& program, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return;
  std::vector<std::string> names;
  for (const CLI::App* command : program.get_subcommands({})) names.push_back(command->get_name());
  for (const auto& name : names)
    if (name == argv[1]) return;
  const std::string near = nearest_of(argv[1], names);
  throw ConfigError(
      format("there is no command `{}`{}; see octet --help", printable(argv[1]), near.empty() ? "" : "; did you mean `" + near + "`?"));
}

const CLI::App& command_named(const CLI::App& program, std::string_view name) {
  for (const CLI::App* command : program.get_subcommands({}))
    if (command->get_name() == name) return *command;
  return program;
}

// Leaves out the first "--", which separates two command lines; CLI11 would take it for the end of the first subcommand. Returns the number
// of words.
int without_mark(int argc, char** argv) {
  char** const end = argv + argc;
  char** const mark = std::find_if(argv, end, [](const char* word) { return std::strcmp(word, "--") == 0; });
  if (mark == end) return argc;
  std::rotate(mark, mark + 1, end);
  return argc - 1;
}

// The key that such an option would set, if the subcommand configures a run and has no option that is a letter away.
std::string key_instead(std::string_view word, const std::vector<std::string>& options) {
  const auto typo = [&](const std::string& option) { return edit_distance(word, option) <= 1; };
  const auto has = [&](const char* option) { return std::ranges::find(options, option) != options.end(); };
  if (!has("--set") || !has("--steps") || std::ranges::any_of(options, typo)) return "";
  const train::RunConfig run;
  return config::key_for_option(config::gather(run), word.substr(2));
}

// The message for an option that the subcommand does not have: the option and its key, or the nearest one.
std::string unknown_option(const CLI::App& command, int argc, char** argv) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options())
    for (const auto& name : option->get_lnames()) names.push_back("--" + name);
  for (int i = 2; i < argc; ++i) {
    const std::string_view word(argv[i], std::min(std::strlen(argv[i]), std::strcspn(argv[i], "=")));
    if (!word.starts_with("--") || std::find(names.begin(), names.end(), word) != names.end()) continue;
    if (const std::string key = key_instead(word, names); !key.empty())
      return format("there is no option `{}`; set its key, --set {}=...", printable(word), key);
    const std::string near = nearest_of(word, names);
    return format("there is no option `{}`{}", printable(word), near.empty() ? "" : "; did you mean `" + near + "`?");
  }
  return "";
}

// One line for a refused command line: the error, and the help to read.
std::string refusal(const CLI::App& program, const CLI::ParseError& error, int argc, char** argv) {
  const CLI::App& command = command_named(program, argc > 1 ? argv[1] : "");
  std::string what = dynamic_cast<const CLI::ExtrasError*>(&error) ? unknown_option(command, argc, argv) : "";
  if (what.empty()) what = printable(error.what());
  return format("{}; see octet{} --help", what, &command == &program ? "" : " " + command.get_name());
}

std::string range_error(const Accept& accept, double value) {
  if (value >= accept.at_least && value <= accept.at_most) return "";
  return accept.at_most < std::numeric_limits<double>::infinity()
             ? format("must be from {} to {}, got {}", accept.at_least, accept.at_most, value)
             : format("must be at least {}, got {}", accept.at_least, value);
}

// The error of an option's integer, or "". CLI11 would take the largest one for one that is too large.
std::string integer_error(const std::string& text) {
  std::int64_t value = 0;
  const char *begin = text.data() + (text.starts_with('+') ? 1 : 0), *end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(begin, end, value);
  return error == std::errc() && stop == end ? "" : format("must be a whole number of at most 63 bits, got {}", text);
}

// The same for a number; infinity and NaN are none.
std::string number_error(const std::string& text) {
  const auto value = parse_number(text);
  return value && std::isfinite(*value) ? "" : format("must be a number, got {}", text);
}

// CLI11 takes an empty value of an option that may have none for none.
void require_value_if_given(const std::string& option, int argc, char** argv) {
  for (int i = 2; i < argc; ++i)
    if (argv[i] == option + "=" || (argv[i] == option && i + 1 < argc && argv[i + 1][0] == 0))
      throw ConfigError(format("{}: must not be empty; see octet {} --help", option, argv[1]));
}

// "a,b" -> a, b.
std::vector<std::string> split(const std::vector<std::string>& texts, char separator) {
  std::vector<std::string> out;
  for (const std::string& text : texts)
    for (std::size_t at = 0, end = 0; end != std::string::npos; at = end + 1) {
      end = text.find(separator, at);
      out.push_back(text.substr(at, end - at));
    }
  return out;
}

int complain(std::string_view what, ExitCode code) {
  std::fprintf(stderr, "octet: %s\n", printable(what, most_of_a_message).c_str());
  return int(code);
}

// Of the standard library's errors, those that the machine is to blame for.
int complain_of(const std::exception& e) {
  if (const auto* file = dynamic_cast<const std::filesystem::filesystem_error*>(&e))
    return complain(format("cannot use '{}': {}", printable(file->path1().string()), file->code().message()), ExitCode::io);
  if (const auto* system = dynamic_cast<const std::system_error*>(&e);
      system && system->code() == std::errc::resource_unavailable_try_again)
    return complain("cannot begin a thread: raise the limit of processes (ulimit -u)", ExitCode::device);
  if (dynamic_cast<const std::bad_alloc*>(&e) || dynamic_cast<const std::length_error*>(&e))
    return complain("out of memory: use a smaller batch or a smaller model, or raise the limit of memory (ulimit -v)", ExitCode::device);
  return complain(e.what(), ExitCode::internal);
}

// Help goes by CLI11 to std::cout.
int show_help(const CLI::App& app, const CLI::Success& e) {
  const int code = app.exit(e);
  std::cout.flush();
  return std::cout ? code : complain("cannot write the help to standard output", ExitCode::io);
}

}  // namespace

struct Command::Parser {
  CLI::App* app;
  Result result;
  std::vector<std::pair<CLI::Option*, bool*>> optional = {};           // options whose value may be left out, and whether they were named
  std::vector<std::pair<std::vector<std::string>*, char>> lists = {};  // values that one word may list, and their separator

  // Checks after all words have been read.
  void complete() const {
    for (const auto& [option, named] : optional) *named = option->count() > 0;
    for (const auto& [values, separator] : lists) *values = split(*values, separator);
  }

  void require_values(int argc, char** argv) const {
    for (const auto& [option, named] : optional) require_value_if_given(option->get_name(), argc, argv);
  }

  CLI::Option* add(CLI::Option* option, const Accept& accept) {
    if (!accept.one_of.empty()) option->check(CLI::IsMember(accept.one_of));
    if (accept.at_least > -std::numeric_limits<double>::infinity())
      option->check([accept](const std::string& text) { return range_error(accept, parse_number(text).value_or(NAN)); });
    return option->capture_default_str();
  }
};

struct Program::State {
  CLI::App app{"Octet trains language models in 8-bit floating point.", "octet"};
  std::vector<std::unique_ptr<Command::Parser>> parsers;
};

void Command::positional(const std::string& name, std::string& value, const std::string& help, bool required) {
  parser_.app->add_option(name, value, help)->required(required)->check(empty_error);
}
void Command::positional(const std::string& name, std::vector<std::string>& values, const std::string& help) {
  parser_.app->add_option(name, values, help)->required()->check(empty_error);
}
void Command::option(const std::string& names, std::string& value, const std::string& help, const Accept& accept, bool required) {
  CLI::Option* option = parser_.add(parser_.app->add_option(names, value, help), accept)->required(required);
  if (!accept.may_be_empty) option->check(empty_error);
}
void Command::option(const std::string& names, std::int64_t& value, const std::string& help, const Accept& accept) {
  parser_.add(parser_.app->add_option(names, value, help)->check(integer_error), accept);
}
void Command::option(const std::string& names, double& value, const std::string& help, const Accept& accept) {
  parser_.add(parser_.app->add_option(names, value, help)->check(number_error), accept);
}
void Command::option(const std::string& names, std::vector<std::string>& values, const std::string& help, char separator, bool required) {
  CLI::Option* option = parser_.app->add_option(names, values, help)->required(required)->allow_extra_args(false);
  if (separator == 0) {
    option->check(empty_error);
    return;
  }
  option->capture_default_str()->check([separator](const std::string& text) {
    const auto parts = split({text}, separator);
    return std::find(parts.begin(), parts.end(), "") == parts.end() ? std::string() : format("\"{}\" has an empty part", text);
  });
  parser_.lists.emplace_back(&values, separator);
  parser_.app->parse_complete_callback([this_parser = &parser_] { this_parser->complete(); });
}
void Command::flag(const std::string& names, bool& value, const std::string& help) { parser_.app->add_flag(names, value, help); }
void Command::optional_value(const std::string& names, bool& given, std::string& value, const std::string& help) {
  parser_.optional.emplace_back(parser_.app->add_option(names, value, help)->expected(0, 1)->check(empty_error), &given);
  parser_.app->parse_complete_callback([this_parser = &parser_] { this_parser->complete(); });
}
void Command::rest(std::vector<std::string>& words) {
  parser_.app->prefix_command();
  parser_.app->parse_complete_callback([app = parser_.app, &words] { words = app->remaining(); });
}
std::vector<std::string> Command::given() const {
  std::vector<std::string> names;
  for (const CLI::Option* option : parser_.app->get_options())
    if (option->count() > 0) names.push_back(option->nonpositional() ? option->get_name() : option->results().front());
  return names;
}
void Command::run(std::function<ExitCode()> work) {
  parser_.app->final_callback([work = std::move(work), to = parser_.result] {
    if (to == Result::file) output::ignore_failures();
    result = work();
  });
}

Program::Program() : state_(std::make_unique<State>()) {
  state_->app.require_subcommand(1);
  state_->app.set_help_all_flag("--help-all", "help of every command");
  state_->app.set_version_flag("--version", "octet " OCTET_VERSION, "version of the program");
  state_->app.footer("Help on a command: octet COMMAND --help. Exit codes: docs/errors.md.");
}
Program::~Program() = default;

Command Program::command(const std::string& name, const std::string& what, const std::string& examples, Result to) {
  CLI::App* app = state_->app.add_subcommand(name, what);
  app->footer("Examples:\n" + examples);
  state_->parsers.push_back(std::make_unique<Command::Parser>(Command::Parser{app, to}));
  return Command(*state_->parsers.back());
}

int Program::run(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error of its write
  try {
    require_known_command(state_->app, argc, argv);
    if (argc > 1 && command_named(state_->app, argv[1]).get_prefix_command()) argc = without_mark(argc, argv);
    for (const auto& parser : state_->parsers)
      if (argc > 1 && parser->app->get_name() == argv[1]) parser->require_values(argc, argv);
    state_->app.parse(argc, argv);
    output::finish();
  } catch (const CLI::Success& e) {
    return show_help(state_->app, e);
  } catch (const CLI::ParseError& e) {
    return complain(refusal(state_->app, e, argc, argv), ExitCode::usage);
  } catch (const Error& e) {
    output::ignore_failures();
    output::finish();
    return complain(e.what(), e.code());
  } catch (const std::exception& e) {
    return complain_of(e);
  }
  return int(result);
}

}  // namespace octet::cli
