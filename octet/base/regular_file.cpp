#include "octet/base/regular_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>

#include "octet/base/error.hpp"
#include "octet/base/path.hpp"
#include "octet/base/text.hpp"

namespace octet {
namespace {

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "folder";
  if (S_ISFIFO(mode)) return "pipe";
  if (S_ISSOCK(mode)) return "socket";
  return "device";
}

std::string place_of(const Descriptor& file) {
  char place[PATH_MAX];
  const ssize_t n = ::readlink(format("/proc/self/fd/{}", file.number()).c_str(), place, sizeof place);
  return n < 0 ? "" : std::string(place, std::size_t(n));
}

// O_NONBLOCK: opening a pipe must not wait for a writer. O_NOCTTY: a terminal must not become this process's own.
Descriptor open_at_once(const std::string& path, int flags, Link link) {
  Descriptor file(path, flags | O_NONBLOCK | O_NOCTTY | (link == Link::follow ? 0 : O_NOFOLLOW), 0666);
  if (!file.ok() && errno == ELOOP && link != Link::follow) refuse_link(path);
  // By the place of the open file, so that no folder can become a link between a look and the opening.
  if (file.ok() && link == Link::refuse_all && place_of(file) != path) refuse_link(path);
  return file;
}

// Of an open regular file. Refuses any other, and one that could not be opened.
struct stat facts_of(const Descriptor& file, const std::string& path, std::string_view verb) {
  struct stat facts {};
  if (!file.ok() && errno == ENXIO && ::stat(path.c_str(), &facts) == 0 && !S_ISREG(facts.st_mode)) errno = 0;
  else if (!file.ok() || ::fstat(file.number(), &facts) != 0) refuse_file(verb, path, errno);
  if (!S_ISREG(facts.st_mode)) throw DataError(format("{}: is a {}, not a regular file", printable(path), kind_of(facts.st_mode)));
  return facts;
}

void set_properties(RegularFile& f, const struct stat& facts) {
  f.size = std::uint64_t(facts.st_size), f.device = facts.st_dev, f.inode = facts.st_ino;
  f.changed_seconds = facts.st_mtim.tv_sec, f.changed_nanoseconds = facts.st_mtim.tv_nsec;
}

}  // namespace

RegularFile RegularFile::open(const std::string& path, Link link) {
  RegularFile out;
  out.file = open_at_once(path, O_RDONLY, link);
  set_properties(out, facts_of(out.file, path, "read"));
  return out;
}

Descriptor open_own_file(const std::string& path, int flags, std::string_view verb) {
  Descriptor file = open_at_once(path, flags, Link::refuse);
  facts_of(file, path, verb);
  return file;
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
