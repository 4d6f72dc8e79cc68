#pragma once

#include "octet/base/text.hpp"

namespace octet::log {

/// Lines for people, on standard error, so that standard output holds results alone. Safe from any thread.
void line(std::string_view text);
template <class... Args> void info(std::string_view pattern, const Args&... args) { line(format(pattern, args...)); }
template <class... Args> void warn(std::string_view pattern, const Args&... args) { line("warning: " + format(pattern, args...)); }

/// Drops info() and warn() lines while set: `--quiet`, and tests.
void set_quiet(bool);

}  // namespace octet::log
