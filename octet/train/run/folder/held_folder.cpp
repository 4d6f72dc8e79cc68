#include "octet/train/run/folder/held_folder.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "octet/base/check.hpp"
#include "octet/base/regular_file.hpp"

namespace octet::train {

HeldFolder::HeldFolder(const std::string& folder) : folder_(folder), lock_(open_own_file(folder + "/.lock", O_RDWR | O_CREAT, "lock")) {
  if (::flock(lock_.number(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    char holder[32] = {};
    const ssize_t n = ::pread(lock_.number(), holder, sizeof holder - 1, 0);
    throw IoError(format("{} belongs to a run that is still going{}: stop that one first, or train into another folder", printable(folder),
                         n > 0 ? ", process " + printable(holder) : ""));
  }
  // For that message alone: a failure to write it is no failure to lock.
  const std::string mine = to_text(::getpid());
  if (::ftruncate(lock_.number(), 0) == 0 && ::pwrite(lock_.number(), mine.data(), mine.size(), 0) < 0) return;
}

bool HeldFolder::in_place() const {
  if (folder_.empty()) return true;
  struct stat mine {
  }, there{};
  return ::fstat(lock_.number(), &mine) == 0 && ::stat((folder_ + "/.lock").c_str(), &there) == 0 && mine.st_dev == there.st_dev &&
         mine.st_ino == there.st_ino;
}

}  // namespace octet::train
