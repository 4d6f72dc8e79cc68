#include "octet/data/mapped_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "octet/base/error.hpp"
#include "octet/base/text.hpp"

namespace octet::data {
namespace {

[[noreturn]] void refuse(const std::string& path, int reason) {
  if (reason == ENOENT) throw DataError(format("{}: there is no such file; copy it again or run `octet tokenize` again", printable(path)));
  refuse_file("read", path, reason);
}

}  // namespace

// O_NONBLOCK: opening a pipe by mistake must not wait for a writer.
MappedFile::MappedFile(const std::string& path) : path_(path), file_(path, O_RDONLY | O_NONBLOCK) {
  struct stat facts {};
  if (!file_.ok() || ::fstat(file_.number(), &facts) != 0) refuse(path, errno);
  if (!S_ISREG(facts.st_mode))
    throw DataError(format("{}: a token shard must be a plain file; copy the file again or run `octet tokenize` again", printable(path)));
  const auto size = std::size_t(facts.st_size);
  if (size > 0) {
    void* const address = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file_.number(), 0);
    if (address == MAP_FAILED) refuse(path, errno);
    bytes_ = {static_cast<const char*>(address), size};
  }
  changed_seconds_ = facts.st_mtim.tv_sec, changed_nanoseconds_ = facts.st_mtim.tv_nsec;
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)), file_(std::move(other.file_)), bytes_(std::exchange(other.bytes_, {})),
      changed_seconds_(other.changed_seconds_), changed_nanoseconds_(other.changed_nanoseconds_) {}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<char*>(bytes_.data()), bytes_.size());
}

void MappedFile::check_unchanged() const {
  struct stat facts {};
  if (::fstat(file_.number(), &facts) != 0) refuse_file("read", path_, errno);
  if (std::size_t(facts.st_size) != bytes_.size())
    throw DataError(format("{}: the file had {} bytes when it was opened, now it has {}; leave shards alone while they are read", printable(path_),
                           bytes_.size(), (long long)facts.st_size));
  if (facts.st_mtim.tv_sec != changed_seconds_ || facts.st_mtim.tv_nsec != changed_nanoseconds_)
    throw DataError(format("{}: the file was written to after it was opened; leave shards alone while they are read", printable(path_)));
}

}  // namespace octet::data
