#include "octet/base/file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <system_error>

#include "octet/base/error.hpp"
#include "octet/base/text.hpp"

namespace octet {
namespace {

[[noreturn]] void refuse(std::string_view verb, const std::string& path, int reason) {
  throw IoError(format("cannot {} '{}': {}", verb, printable(path), std::generic_category().message(reason)));
}

/// An open file; closed when it goes.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const { return number_; }
  bool ok() const { return number_ >= 0; }
  /// 0, or why the last bytes may not have arrived (NFS and quotas report it here).
  int close() {
    const int failed = ::close(number_);
    number_ = -1;
    return failed ? errno : 0;
  }

 private:
  int number_;
};

/// Opens again where a signal came first.
template <class... Mode>
int open_file(const std::string& path, int flags, Mode... mode) {
  int number;
  do number = ::open(path.c_str(), flags | O_CLOEXEC, mode...);
  while (number < 0 && errno == EINTR);
  return number;
}

int write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(file, bytes.data(), bytes.size());
    if (n >= 0)
      bytes.remove_prefix(std::size_t(n));
    else if (errno != EINTR)
      return errno;
  }
  return 0;
}

/// 0 or the reason. A failed fsync is final: the kernel has marked the pages clean, so a second one would lie.
int write_and_sync(const std::string& path, std::string_view bytes) {
  Descriptor file(open_file(path, O_WRONLY | O_CREAT | O_EXCL, 0666));
  if (!file.ok()) return errno;
  if (const int reason = write_all(file.number(), bytes)) return reason;
  if (::fsync(file.number()) != 0) return errno;
  return file.close();
}

/// 0 or the reason. Some file systems cannot sync a folder and say so with EINVAL; there is then nothing more to do.
int sync_folder(const std::string& folder) {
  const Descriptor file(open_file(folder, O_RDONLY | O_DIRECTORY));
  if (!file.ok()) return errno;
  return ::fsync(file.number()) == 0 || errno == EINVAL ? 0 : errno;
}

std::string folder_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

std::string read_file(const std::string& path, std::size_t max_bytes) {
  const auto refuse_size = [&](std::string_view size) {
    throw DataError(format("{}: the file may have at most {} bytes, it has {}", printable(path), grouped((long long)max_bytes), size));
  };
  const Descriptor file(open_file(path, O_RDONLY));
  if (!file.ok()) refuse("read", path, errno);
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
    if (n < 0) refuse("read", path, errno);
    if (n == 0) break;
    if ((filled += std::size_t(n)) > max_bytes) refuse_size("more");
  }
  bytes.resize(filled);
  return bytes;
}

void write_file_atomically(const std::string& path, std::string_view bytes) {
  static std::atomic<unsigned> serial{0};
  const std::string folder = folder_of(path);
  const std::string temporary = format("{}/.octet-{}-{}.tmp", folder, ::getpid(), serial++);
  int reason = write_and_sync(temporary, bytes);
  if (!reason && ::rename(temporary.c_str(), path.c_str()) != 0) reason = errno;
  if (reason) {
    ::unlink(temporary.c_str());
    refuse("write", path, reason);
  }
  if ((reason = sync_folder(folder))) refuse("make durable", path, reason);
}

}  // namespace octet
