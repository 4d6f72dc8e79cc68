#include "octet/base/file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "octet/base/error.hpp"
#include "octet/base/new_file.hpp"
#include "octet/base/text.hpp"

namespace octet {

std::string read_file(const std::string& path, std::size_t max_bytes) {
  const auto refuse_size = [&](std::string_view size) {
    throw DataError(format("{}: the file may have at most {} bytes, it has {}", printable(path), grouped((long long)max_bytes), size));
  };
  const Descriptor file(path, O_RDONLY);
  if (!file.ok()) refuse_file("read", path, errno);
  struct stat facts {};
  std::size_t expected = 0;
  if (::fstat(file.number(), &facts) == 0 && S_ISREG(facts.st_mode)) expected = std::size_t(facts.st_size);
  if (expected > max_bytes) refuse_size(grouped((long long)expected));

  std::string bytes;
  std::size_t filled = 0;
  for (;;) {
    // One byte beyond the expected end tells a file that has grown from one that is complete.
    const std::size_t wanted = std::max(expected + 1, filled + (std::size_t(64) << 10));
    bytes.resize(wanted > max_bytes ? max_bytes + 1 : wanted);
    const ssize_t n = ::read(file.number(), bytes.data() + filled, bytes.size() - filled);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) refuse_file("read", path, errno);
    if (n == 0) break;
    if ((filled += std::size_t(n)) > max_bytes) refuse_size("more");
  }
  bytes.resize(filled);
  return bytes;
}

void write_file_atomically(const std::string& path, std::string_view bytes) {
  NewFile file(path, bytes.size());
  file.write(0, std::as_bytes(std::span(bytes)));
  file.publish();
}

}  // namespace octet
