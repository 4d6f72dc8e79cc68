#pragma once

#include "octet/base/text.hpp"

namespace octet::log {

/// Lines for people, on standard error, so that standard output holds results alone. Safe from any thread.
void line(std::string_view text);
/// The same where set_quiet() drops other lines. Bytes that are not printable text are escaped.
void warning(std::string_view text);
template <class... Args>
void info(std::string_view pattern, const Args&... args) {
  line(format(pattern, args...));
}
template <class... Args>
void warn(std::string_view pattern, const Args&... args) {
  warning(format(pattern, args...));
}

/// A line below all others that is drawn anew in its place, by the escape codes of terminals: line() writes above it. It must fit the
/// terminal's width.
void status(std::string_view text);
/// Leaves the status line where it is, if there is one: what comes next begins below it.
void end_status();

/// Drops info() and status() lines while set; warnings remain: `--quiet`, and tests.
void set_quiet(bool);

}  // namespace octet::log
