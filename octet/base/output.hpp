#pragma once

#include "octet/base/text.hpp"

namespace octet::output {

/// Writes a subcommand's result to standard output; a silent thread (log::Silence) writes none. Throws IoError where the system refuses, at
/// the latest in finish().
void write(std::string_view text);
template <class... Args>
void print(std::string_view pattern, const Args&... args) {
  write(format(pattern, args...));
}
/// Writes the buffer. Throws IoError.
void finish();

/// For subcommands whose result is a file: a failed write to standard output is no error.
void ignore_failures();

}  // namespace octet::output
