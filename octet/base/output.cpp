#include "octet/base/output.hpp"

#include <cerrno>
#include <cstdio>

#include "octet/base/descriptor.hpp"
#include "octet/base/log.hpp"

namespace octet::output {
namespace {

bool ignored = false;

void require(bool written) {
  if (written || ignored) return;
  const int reason = errno;
  std::clearerr(stdout);
  ignored = true;  // reported once
  refuse_file("write to", "standard output", reason == 0 ? EIO : reason);
}

}  // namespace

void write(std::string_view text) {
  if (log::silent()) return;
  errno = 0;
  require(std::fwrite(text.data(), 1, text.size(), stdout) == text.size());
}

void finish() {
  errno = 0;
  require(std::fflush(stdout) == 0 && std::ferror(stdout) == 0);
}

void ignore_failures() { ignored = true; }

}  // namespace octet::output
