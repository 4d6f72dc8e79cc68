#include "octet/base/new_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <utility>
#include <vector>

#include "octet/base/check.hpp"
#include "octet/base/folder.hpp"
#include "octet/base/wildcard.hpp"

namespace octet {
namespace {

/// 0 or the reason. Not every file system can reserve; the size is then set without.
int reserve(int file, std::uint64_t size) {
  if (size == 0 || ::fallocate(file, 0, 0, off_t(size)) == 0) return 0;
  if (errno != EOPNOTSUPP && errno != ENOSYS && errno != EINTR) return errno;
  return ::ftruncate(file, off_t(size)) == 0 ? 0 : errno;
}

}  // namespace

NewFile::NewFile(std::string path, std::uint64_t size) : path_(std::move(path)), size_(size) {
  static std::atomic<unsigned> serial{0};
  const std::string temporary = format("{}/.octet-{}-{}.tmp", folder_of(path_), ::getpid(), serial++);
  file_ = Descriptor(temporary, O_WRONLY | O_CREAT | O_EXCL, 0666);
  if (!file_.ok()) refuse_file("write", path_, errno);
  temporary_ = temporary;
  if (const int reason = reserve(file_.number(), size_)) fail(reason);
}

NewFile::NewFile(NewFile&& from) noexcept
    : path_(std::move(from.path_)), temporary_(std::exchange(from.temporary_, {})), size_(from.size_), file_(std::move(from.file_)) {}

void NewFile::write(std::uint64_t offset, std::span<const std::byte> bytes) {
  check(file_.ok(), "{} is written already", path_);
  check(bytes.size() <= size_ && offset <= size_ - bytes.size(), "{} has {} bytes, wrote {} at {}", path_, size_, bytes.size(), offset);
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(file_.number(), bytes.data(), bytes.size(), off_t(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(errno);
    bytes = bytes.subspan(std::size_t(n));
    offset += std::uint64_t(n);
  }
}

void NewFile::sync() {
  if (!file_.ok()) return;
  if (::fsync(file_.number()) != 0) fail(errno);
  if (const int reason = file_.close()) fail(reason);
}

void NewFile::publish() {
  sync();
  check(!temporary_.empty(), "{} was published or given up already", path_);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail(errno);
  temporary_.clear();
  sync_folder_of(path_);
}

void NewFile::fail(int reason) {
  discard();
  refuse_file("write", path_, reason);
}

void NewFile::discard() {
  file_.close();
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  temporary_.clear();
}

void remove_abandoned(const std::string& folder) {
  std::error_code ignored;
  std::vector<std::filesystem::path> left;
  for (std::filesystem::directory_iterator at(folder, ignored), end; !ignored && at != end; at.increment(ignored)) {
    const std::string name = at->path().filename().string();
    if (wildcard_match(".octet-[0-9]*-[0-9]*.tmp", name) || wildcard_match("?*.octet-[0-9]*.tmp", name)) left.push_back(at->path());
  }
  for (const auto& path : left) std::filesystem::remove_all(path, ignored);
}

}  // namespace octet
