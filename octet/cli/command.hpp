#pragma once

#include <CLI/CLI.hpp>

#include "octet/base/check.hpp"

// The `octet` program: one file a subcommand, each of which adds itself to the program and runs when it is named.

namespace octet::cli {

/// Adds a subcommand with its help and examples. `run` does its work after parsing and returns the exit code.
CLI::App& add_command(CLI::App& program, const std::string& name, const std::string& what, const std::string& examples);
void run_command(CLI::App& command, std::function<ExitCode()> run);

void add_train(CLI::App&);
void add_compare(CLI::App&);
void add_tokenize(CLI::App&);
void add_eval(CLI::App&);
void add_generate(CLI::App&);
void add_export(CLI::App&);
void add_report(CLI::App&);
void add_plan(CLI::App&);
void add_doctor(CLI::App&);

/// Parses and runs. Errors end as one line on standard error and the exit code of docs/errors.md.
int run_program(int argc, char** argv);

}  // namespace octet::cli
