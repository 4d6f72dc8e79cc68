#include "octet/base/lock_state.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "octet/base/descriptor.hpp"
#include "octet/base/error.hpp"
#include "octet/base/file.hpp"

namespace octet {
namespace {

constexpr std::size_t most_locks = std::size_t(16) << 20;

// The process number that the file contains, or 0.
long long process_in(int file) {
  char text[32] = {};
  return ::pread(file, text, sizeof text - 1, 0) > 0 ? std::atoll(text) : 0;
}

// Whether other machines may hold locks that /proc/locks does not have.
bool is_shared(int file) {
  struct statfs facts {};
  constexpr long lustre = 0x0BD00BD0, gpfs = 0x47504653, ceph = 0x00C36400, beegfs = 0x19830326;
  if (::fstatfs(file, &facts) != 0) return true;
  const long type = long(facts.f_type);
  return type == NFS_SUPER_MAGIC || type == lustre || type == gpfs || type == ceph || type == beegfs;
}

// Whether a line of /proc/locks, "1: FLOCK  ADVISORY  WRITE 4711 fe:00:10954738 0 EOF", is about this file.
bool is_about(const char* line, const struct stat& facts, long long process) {
  long long holder = 0;
  unsigned major = 0, minor = 0;
  unsigned long long inode = 0;
  if (std::sscanf(line, "%*d: FLOCK %*s %*s %lld %x:%x:%llu", &holder, &major, &minor, &inode) != 4 || inode != facts.st_ino) return false;
  return (major == ::major(facts.st_dev) && minor == ::minor(facts.st_dev)) || (process != 0 && holder == process);
}

}  // namespace

LockState lock_state(const std::string& path) {
  const Descriptor file(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW);
  if (!file.ok()) return errno == ENOENT ? LockState::missing : LockState::unknown;
  struct stat facts {};
  if (::fstat(file.number(), &facts) != 0) return LockState::unknown;
  std::string locks;
  try {
    locks = read_file("/proc/locks", most_locks);
  } catch (const Error&) {
    return LockState::unknown;
  }
  const long long process = process_in(file.number());
  for (std::size_t at = 0; at < locks.size();) {
    std::size_t end = locks.find('\n', at);
    if (end == std::string::npos) end = locks.size();
    if (is_about(locks.substr(at, end - at).c_str(), facts, process)) return LockState::held;
    at = end + 1;
  }
  return is_shared(file.number()) ? LockState::unknown : LockState::free;
}

}  // namespace octet
