#include "octet/base/log.hpp"

#include <atomic>
#include <cstdio>
#include <mutex>

namespace octet::log {
namespace {
std::atomic<bool> quiet{false};
std::mutex mutex;
}  // namespace

void set_quiet(bool q) { quiet = q; }

void line(std::string_view text) {
  if (quiet) return;
  const std::scoped_lock lock(mutex);
  std::fprintf(stderr, "%.*s\n", int(text.size()), text.data());
}

}  // namespace octet::log
