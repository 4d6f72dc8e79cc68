#include "octet/io/input_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "octet/base/check.hpp"

namespace octet::io {

InputFile::InputFile(std::string path, Link link) : path_(std::move(path)) {
  // O_NONBLOCK: opening a pipe must not wait for a writer.
  file_ = Descriptor(path_, O_RDONLY | O_NONBLOCK | (link == Link::refuse ? O_NOFOLLOW : 0));
  if (!file_.ok() && errno == ELOOP && link == Link::refuse) {
    throw DataError(format("{}: a symbolic link is not followed here; put the file itself in its place", printable(path_)));
  }
  struct stat facts {};
  if (!file_.ok() || ::fstat(file_.number(), &facts) != 0) refuse_file("read", path_, errno);
  if (!S_ISREG(facts.st_mode)) {
    throw DataError(
        format("{}: must be a regular file, it is a {}", printable(path_), S_ISDIR(facts.st_mode) ? "folder" : "device or pipe"));
  }
  size_ = std::uint64_t(facts.st_size), device_ = facts.st_dev, inode_ = facts.st_ino;
  changed_seconds_ = facts.st_mtim.tv_sec, changed_nanoseconds_ = facts.st_mtim.tv_nsec;
}

InputFile::~InputFile() {
  if (mapped_ != nullptr) ::munmap(mapped_, size_);
}

InputFile::InputFile(InputFile&& from) noexcept
    : path_(std::move(from.path_)),
      file_(std::move(from.file_)),
      size_(from.size_),
      device_(from.device_),
      inode_(from.inode_),
      changed_seconds_(from.changed_seconds_),
      changed_nanoseconds_(from.changed_nanoseconds_),
      mapped_(std::exchange(from.mapped_, nullptr)) {}

void InputFile::read(std::uint64_t offset, std::span<std::byte> out) const {
  check(file_.ok(), "{} was mapped: read the mapping", path_);
  while (!out.empty()) {
    const ssize_t n = ::pread(file_.number(), out.data(), out.size(), off_t(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) refuse_file("read", path_, errno);
    if (n == 0)
      throw DataError(
          format("{}: the file ended at byte {} while it was read; read it when nothing writes to it", printable(path_), offset));
    out = out.subspan(std::size_t(n));
    offset += std::uint64_t(n);
  }
}

std::span<const std::byte> InputFile::map() {
  if (mapped_ == nullptr && size_ > 0) {
    void* const at = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file_.number(), 0);
    if (at == MAP_FAILED) refuse_file("map", path_, errno);
    mapped_ = at;
  }
  file_.close();
  return {static_cast<const std::byte*>(mapped_), size_};
}

void InputFile::check_unchanged() const {
  struct stat facts {};
  const bool there = ::stat(path_.c_str(), &facts) == 0;
  if (there && std::uint64_t(facts.st_size) == size_ && facts.st_dev == device_ && facts.st_ino == inode_ &&
      facts.st_mtim.tv_sec == changed_seconds_ && facts.st_mtim.tv_nsec == changed_nanoseconds_) {
    return;
  }
  throw DataError(format("{}: the file was {} while it was open; begin again when nothing writes to it", printable(path_),
                         !there                          ? "removed"
                         : facts.st_ino != inode_        ? "replaced"
                         : off_t(size_) != facts.st_size ? format("changed from {} to {} bytes", size_, facts.st_size)
                                                         : std::string("changed")));
}

}  // namespace octet::io
