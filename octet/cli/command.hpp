#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "octet/base/check.hpp"

// The `octet` program: one file a subcommand, each of which adds itself to the program and runs when it is named. CLI11 does the
// parsing, behind this header: its templates would take longer to compile than all of Octet.

namespace octet::cli {

/// Constraints of an option besides its type.
struct Accept {
  double at_least = -std::numeric_limits<double>::infinity();
  double at_most = std::numeric_limits<double>::infinity();
  std::vector<std::string> one_of = {};
  bool may_be_empty = false;  // of a text
};

/// Where the result of a subcommand goes. Where it is standard output, the subcommand fails with exit code 74 when it cannot be written
/// there; if it is a file, printed lines may get lost.
enum class Result { standard_output, file };

/// A subcommand that is being described. Values are written when the command line is parsed; the referents must outlive it.
class Command {
 public:
  struct Parser;
  explicit Command(Parser& parser) : parser_(parser) {}

  void positional(const std::string& name, std::string& value, const std::string& help, bool required);
  void positional(const std::string& name, std::vector<std::string>& values, const std::string& help);
  void option(const std::string& names, std::string& value, const std::string& help, const Accept& = {}, bool required = false);
  void option(const std::string& names, std::int64_t& value, const std::string& help, const Accept& = {});
  void option(const std::string& names, double& value, const std::string& help, const Accept& = {});
  /// Repeated, or at once where `separator` is not 0: --recipes a,b,c.
  void option(const std::string& names, std::vector<std::string>& values, const std::string& help, char separator = 0,
              bool required = false);
  void flag(const std::string& names, bool& value, const std::string& help);
  /// An option whose value may be left out; `given`: whether it was named.
  void optional_value(const std::string& names, bool& given, std::string& value, const std::string& help);

  /// The words that follow the options, as another command line. A "--" before them is left out.
  void rest(std::vector<std::string>& words);

  /// Options that the command line names, and its words that belong to none, after parsing.
  std::vector<std::string> given() const;

  /// The work, after parsing; returns the exit code.
  void run(std::function<ExitCode()>);

 private:
  Parser& parser_;
};

/// The program, to which subcommands are added.
class Program {
 public:
  Program();
  ~Program();
  Command command(const std::string& name, const std::string& what, const std::string& examples, Result result = Result::standard_output);
  /// Parses and runs. Errors end as one line on standard error and the exit code of docs/errors.md.
  int run(int argc, char** argv);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

void add_train(Program&);
void add_compare(Program&);
void add_tokenize(Program&);
void add_tokenizer(Program&);
void add_eval(Program&);
void add_generate(Program&);
void add_chat(Program&);
void add_export(Program&);
void add_report(Program&);
void add_watch(Program&);
void add_top(Program&);
void add_inspect(Program&);
void add_plan(Program&);
void add_bench(Program&);
void add_doctor(Program&);
void add_config(Program&);
void add_launch(Program&);

}  // namespace octet::cli
