#pragma once

#include <signal.h>
#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

namespace octet::launch {

using Environment = std::vector<std::pair<std::string, std::string>>;

/// A program to start.
struct Start {
  std::string program;
  std::vector<std::string> words{};    // its arguments, without its name
  Environment variables{};             // added to this process' environment
  std::vector<std::string> removed{};  // variables that it shall not have
  int output = -1, error = -1;         // descriptors for its standard output and error; -1: those of this process
  bool own_group = false;              // a process group of its own: the terminal's Ctrl-C goes to the launcher alone
};

/// Starts it without input and with the signal mask `mask`. It is killed when this process ends. Throws DeviceError that names the program
/// if the system refuses a process; the process ends with exit code 127 and one line if it cannot be executed.
pid_t start(const Start&, const sigset_t& mask);

/// Everything that a program writes to standard output within `seconds`; it is killed afterwards. Its exit code does not matter.
std::string output_of(Start, double seconds);

/// This program, also after its file was replaced.
inline constexpr const char* this_program = "/proc/self/exe";

/// The path of an executable file of that name in the folders of PATH, or "".
std::string find_program(const std::string& name);

}  // namespace octet::launch
