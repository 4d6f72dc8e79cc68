#include "octet/io/input_file.hpp"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "octet/base/check.hpp"

namespace octet::io {

InputFile::InputFile(std::string path, Link link) : path_(std::move(path)), opened_(RegularFile::open(path_, link)) {}

InputFile::~InputFile() {
  if (mapped_ != nullptr) ::munmap(mapped_, size());
}

InputFile::InputFile(InputFile&& from) noexcept
    : path_(std::move(from.path_)), opened_(std::move(from.opened_)), mapped_(std::exchange(from.mapped_, nullptr)) {}

void InputFile::read(std::uint64_t offset, std::span<std::byte> out) const {
  check(opened_.file.ok(), "{} was mapped: read the mapping", path_);
  while (!out.empty()) {
    const ssize_t n = ::pread(opened_.file.number(), out.data(), out.size(), off_t(offset));
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
  if (mapped_ == nullptr && size() > 0) {
    void* const at = ::mmap(nullptr, size(), PROT_READ, MAP_PRIVATE, opened_.file.number(), 0);
    if (at == MAP_FAILED) refuse_file("map", path_, errno);
    mapped_ = at;
  }
  opened_.file.close();
  return {static_cast<const std::byte*>(mapped_), size()};
}

void InputFile::check_unchanged() const {
  struct stat facts {};
  const bool there = ::stat(path_.c_str(), &facts) == 0;
  if (there && std::uint64_t(facts.st_size) == size() && facts.st_dev == opened_.device && facts.st_ino == opened_.inode &&
      facts.st_mtim.tv_sec == opened_.changed_seconds && facts.st_mtim.tv_nsec == opened_.changed_nanoseconds) {
    return;
  }
  throw DataError(format("{}: the file was {} while it was open; begin again when nothing writes to it", printable(path_),
                         !there                           ? "removed"
                         : facts.st_ino != opened_.inode  ? "replaced"
                         : off_t(size()) != facts.st_size ? format("changed from {} to {} bytes", size(), facts.st_size)
                                                          : std::string("changed")));
}

}  // namespace octet::io
