#include "octet/base/log.hpp"

#include <atomic>
#include <cstdio>
#include <mutex>

namespace octet::log {
namespace {
constexpr const char* from_the_left = "\r\x1b[K";  // the cursor to the first column, and all behind it erased

std::atomic<bool> quiet{false};
thread_local bool thread_is_silent = false;
std::mutex mutex;
std::string shown;  // the status line; empty: there is none

void put(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stderr); }

/// One line above the status line.
void put_above(std::string_view text) {
  const std::scoped_lock lock(mutex);
  put((shown.empty() ? "" : from_the_left) + std::string(text) + "\n" + shown);
}
}  // namespace

void set_quiet(bool q) { quiet = q; }

Silence::Silence() : before_(thread_is_silent) { thread_is_silent = true; }
Silence::~Silence() { thread_is_silent = before_; }
bool silent() { return thread_is_silent; }

void line(std::string_view text) {
  if (!quiet && !thread_is_silent) put_above(text);
}

void warning(std::string_view text) {
  if (!thread_is_silent) put_above("warning: " + printable(text, most_of_a_message));
}

void status(std::string_view text) {
  if (quiet || thread_is_silent) return;
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
