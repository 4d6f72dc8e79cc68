#pragma once

#include "octet/base/text.hpp"

namespace octet::output {

/// Writes a subcommand's result to standard output. Throws IoError where the system refuses, at the latest in finish().
void write(std::string_view text);
template <class... Args>
void print(std::string_view pattern, const Args&... args) {
  write(format(pattern, args...));
}
/// Writes what is buffered. Throws IoError.
void finish();

/// For subcommands whose result is a file: what they print besides is lost where standard output does not take it, without an error.
void ignore_failures();

}  // namespace octet::output
