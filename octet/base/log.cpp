#include "octet/base/log.hpp"

#include <atomic>
#include <cstdio>
#include <mutex>

namespace octet::log {
namespace {
constexpr const char* from_the_left = "\r\x1b[K";  // the cursor to the first column, and all behind it erased

std::atomic<bool> quiet{false};
std::atomic<void (*)(Level, std::string_view)> sink{nullptr};
thread_local bool thread_is_silent = false;
std::mutex mutex;
std::string shown;  // the status line; empty: there is none

void put(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stderr); }

/// One line above the status line.
void put_above(Level level, std::string_view text) {
  if (const auto taken = sink.load()) return taken(level, text);
  const std::scoped_lock lock(mutex);
  const std::string mark = level == Level::warning ? "warning: " : "";
  put((shown.empty() ? "" : from_the_left) + mark + std::string(text) + "\n" + shown);
}
}  // namespace

void set_sink(void (*function)(Level, std::string_view)) { sink = function; }

void set_quiet(bool q) { quiet = q; }

Silence::Silence(bool silent) : before_(thread_is_silent) { thread_is_silent = before_ || silent; }
Silence::~Silence() { thread_is_silent = before_; }
bool silent() { return thread_is_silent; }

void line(std::string_view text) {
  if (!quiet && !thread_is_silent) put_above(Level::info, text);
}

void warning(std::string_view text) {
  if (!thread_is_silent) put_above(Level::warning, printable(text, most_of_a_message));
}

void status(std::string_view text) {
  if (quiet || thread_is_silent || sink.load() != nullptr) return;
  const std::scoped_lock lock(mutex);
  shown = text;
  put(from_the_left + shown);
}

void end_status() {
  if (thread_is_silent) return;
  const std::scoped_lock lock(mutex);
  if (!shown.empty()) put("\n");
  shown.clear();
}

}  // namespace octet::log
