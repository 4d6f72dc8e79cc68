#include "octet/base/regular_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "octet/base/error.hpp"
#include "octet/base/text.hpp"

namespace octet {
namespace {

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "folder";
  if (S_ISFIFO(mode)) return "pipe";
  if (S_ISSOCK(mode)) return "socket";
  return "device";
}

void set_properties(RegularFile& f, const struct stat& facts) {
  f.size = std::uint64_t(facts.st_size), f.device = facts.st_dev, f.inode = facts.st_ino;
  f.changed_seconds = facts.st_mtim.tv_sec, f.changed_nanoseconds = facts.st_mtim.tv_nsec;
}

}  // namespace

RegularFile RegularFile::open(const std::string& path, Link link) {
  RegularFile out;
  // O_NONBLOCK: opening a pipe must not wait for a writer. O_NOCTTY: a terminal must not become this process's own.
  out.file = Descriptor(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | (link == Link::refuse ? O_NOFOLLOW : 0));
  if (!out.file.ok() && errno == ELOOP && link == Link::refuse)
    throw DataError(format("{}: a symbolic link is not followed here; put the file itself in its place", printable(path)));
  struct stat facts {};
  if (!out.file.ok() && errno == ENXIO && ::stat(path.c_str(), &facts) == 0 && !S_ISREG(facts.st_mode)) errno = 0;
  else if (!out.file.ok() || ::fstat(out.file.number(), &facts) != 0) refuse_file("read", path, errno);
  if (!S_ISREG(facts.st_mode)) throw DataError(format("{}: is a {}, not a regular file", printable(path), kind_of(facts.st_mode)));
  set_properties(out, facts);
  return out;
}

RegularFile RegularFile::now(const std::string& path) const {
  struct stat facts {};
  if (::fstat(file.number(), &facts) != 0) refuse_file("read", path, errno);
  RegularFile out;
  set_properties(out, facts);
  return out;
}

void RegularFile::read(const std::string& path, std::int64_t at, std::size_t bytes, std::string& into) const {
  into.resize(bytes);
  std::size_t got = 0;
  while (got < bytes) {
    const ssize_t n = ::pread(file.number(), into.data() + got, bytes - got, off_t(at) + off_t(got));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) refuse_file("read", path, errno);
    if (n == 0) break;
    got += std::size_t(n);
  }
  into.resize(got);
}

bool RegularFile::same_as(const RegularFile& o) const {
  return size == o.size && device == o.device && inode == o.inode && changed_seconds == o.changed_seconds &&
         changed_nanoseconds == o.changed_nanoseconds;
}

}  // namespace octet
