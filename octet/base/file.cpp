#include "octet/base/file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "octet/base/error.hpp"
#include "octet/base/folder.hpp"
#include "octet/base/new_file.hpp"
#include "octet/base/path.hpp"
#include "octet/base/regular_file.hpp"
#include "octet/base/text.hpp"

namespace octet {
namespace {

/// Into a device or a pipe, which waits for its reader.
void write_in_place(const std::string& path, std::string_view bytes) {
  Descriptor file(path, O_WRONLY | O_NOCTTY);
  if (!file.ok()) refuse_file("write", path, errno);
  while (!bytes.empty()) {
    const ssize_t n = ::write(file.number(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) refuse_file("write", path, errno);
    bytes.remove_prefix(std::size_t(n));
  }
  if (const int reason = file.close()) refuse_file("write", path, reason);
}

}  // namespace

std::string read_file(const std::string& path, std::size_t max_bytes, Link link) {
  const auto refuse_size = [&](std::string_view size) {
    throw DataError(format("{}: the file may have at most {} bytes, it has {}", printable(path), grouped((long long)max_bytes), size));
  };
  if (link != Link::follow && is_link(path)) refuse_link(path);
  if (is_folder(path)) refuse_file("read", path, EISDIR);
  const RegularFile in = RegularFile::open(path, link);
  const std::size_t expected = std::size_t(in.size);
  if (expected > max_bytes) refuse_size(grouped((long long)expected));

  std::string bytes;
  std::size_t filled = 0;
  for (;;) {
    // One byte beyond the expected end detects a file that has grown.
    const std::size_t wanted = std::max(expected + 1, filled + (std::size_t(64) << 10));
    bytes.resize(wanted > max_bytes ? max_bytes + 1 : wanted);
    const ssize_t n = ::read(in.file.number(), bytes.data() + filled, bytes.size() - filled);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) refuse_file("read", path, errno);
    if (n == 0) break;
    if ((filled += std::size_t(n)) > max_bytes) refuse_size("more");
  }
  bytes.resize(filled);
  return bytes;
}

void write_file(const std::string& path, std::string_view bytes) {
  const std::string target = behind_links(path);
  struct stat facts {};
  if (::stat(target.c_str(), &facts) == 0 && !S_ISREG(facts.st_mode) && !S_ISDIR(facts.st_mode)) return write_in_place(target, bytes);
  NewFile file(target, bytes.size());
  file.write(0, std::as_bytes(std::span(bytes)));
  file.publish();
}

void write_own_file(const std::string& path, std::string_view bytes) {
  if (is_link(path)) refuse_link(path);
  if (exists(path) && !is_folder(path)) RegularFile::open(path, Link::refuse);
  NewFile file(path, bytes.size());  // its rename replaces a link that came since, and does not follow it
  file.write(0, std::as_bytes(std::span(bytes)));
  file.publish();
}

void require_writable(const std::string& path) {
  const std::string target = behind_links(path);
  const bool there = exists(target), in_place = there && !is_folder(target);
  struct stat facts {};
  const bool regular = in_place && ::stat(target.c_str(), &facts) == 0 && S_ISREG(facts.st_mode);
  if (is_folder(target)) refuse_file("write", path, EISDIR);
  if (in_place && !regular && ::access(target.c_str(), W_OK) != 0) refuse_file("write", path, errno);
  if (!is_folder(folder_of(target))) refuse_file("write", path, exists(folder_of(target)) ? ENOTDIR : ENOENT);
  if ((!there || regular) && ::access(folder_of(target).c_str(), W_OK | X_OK) != 0) refuse_file("write", path, errno);
}

}  // namespace octet
