#pragma once

#include <cstdint>

#include "octet/base/text.hpp"

namespace octet::log {

/// Lines for people, on standard error, so that standard output has only results. Thread-safe.
void line(std::string_view text);
/// The same, also after set_quiet(). Bytes that are not printable text are escaped.
void warning(std::string_view text);
template <class... Args>
void info(std::string_view pattern, const Args&... args) {
  line(format(pattern, args...));
}
template <class... Args>
void warn(std::string_view pattern, const Args&... args) {
  warning(format(pattern, args...));
}

/// A status line below all others, redrawn in place with terminal escape codes; line() writes above it. It must fit the terminal's width.
void status(std::string_view text);
/// Ends the status line, if there is one; later lines begin below it.
void end_status();

enum class Level : std::uint8_t { info, warning };
/// From now on lines go to this function instead of standard error, from any thread; null: to standard error again. There is no status line
/// then. For programs that embed Octet and have a log of their own.
void set_sink(void (*)(Level, std::string_view line));

/// Drops info() and status() lines while set; warnings remain: `--quiet`, and tests.
void set_quiet(bool);

/// While it lives, its thread says nothing, warnings included: of ranks whose first one speaks for all. The form of that one does nothing.
class Silence {
 public:
  explicit Silence(bool silent = true);
  ~Silence();
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;

 private:
  bool before_;
};
/// Whether this thread says nothing.
bool silent();

}  // namespace octet::log
