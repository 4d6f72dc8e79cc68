#include "octet/data/mapped_file.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <utility>

#include "octet/base/error.hpp"
#include "octet/base/path.hpp"
#include "octet/base/text.hpp"

namespace octet::data {
namespace {

constexpr const char* remedy = "copy it again or run `octet tokenize` again";

RegularFile open_shard(const std::string& path) {
  if (!exists(path)) throw DataError(format("{}: there is no such file; {}", printable(path), remedy));
  return with_remedy(remedy, [&] { return RegularFile::open(path); });
}

}  // namespace

MappedFile::MappedFile(const std::string& path) : path_(path), opened_(open_shard(path)) {
  if (opened_.size == 0) return;
  void* const address = ::mmap(nullptr, opened_.size, PROT_READ, MAP_SHARED, opened_.file.number(), 0);
  if (address == MAP_FAILED) refuse_file("read", path, errno);
  bytes_ = {static_cast<const char*>(address), opened_.size};
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)), opened_(std::move(other.opened_)), bytes_(std::exchange(other.bytes_, {})) {}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<char*>(bytes_.data()), bytes_.size());
}

void MappedFile::check_unchanged() const {
  const RegularFile now = opened_.now(path_);
  if (now.same_as(opened_)) return;
  if (now.size != opened_.size)
    throw DataError(format("{}: the file had {} bytes when it was opened, now it has {}; leave shards alone while they are read",
                           printable(path_), opened_.size, now.size));
  throw DataError(format("{}: the file was written to after it was opened; leave shards alone while they are read", printable(path_)));
}

}  // namespace octet::data
