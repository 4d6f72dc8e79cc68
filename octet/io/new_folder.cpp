#include "octet/io/new_folder.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "octet/base/descriptor.hpp"
#include "octet/base/folder.hpp"
#include "octet/base/text.hpp"

namespace octet::io {
namespace {
namespace fs = std::filesystem;

/// Links followed, so that the folder behind a link is replaced and not the link.
std::string resolved(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  std::error_code reason;
  const fs::path out = fs::weakly_canonical(fs::absolute(path, reason), reason);
  if (path.empty() || reason) refuse_file("make the folder", path, path.empty() ? ENOENT : reason.value());
  return out.string();
}

/// 0 or the reason.
int renamed(const std::string& from, const std::string& to) { return ::rename(from.c_str(), to.c_str()) == 0 ? 0 : errno; }

}  // namespace

NewFolder::NewFolder(const std::string& path) : path_(resolved(path)), working_(format("{}.octet-{}.tmp", path_, ::getpid())) {
  std::error_code reason;
  const fs::file_status status = fs::status(path_, reason);
  if (fs::exists(status) && !fs::is_directory(status)) refuse_file("make the folder", path_, EEXIST);
  fs::remove_all(working_, reason);  // of a process of the same number that was killed
  if (const int made = make_folders(working_)) refuse_file("make the folder", path_, made);
}

NewFolder::~NewFolder() {
  std::error_code ignored;
  fs::remove_all(working_, ignored);
}

void NewFolder::commit() {
  int reason = renamed(working_, path_);  // enough where there is no folder, or an empty one
  if (reason == EEXIST || reason == ENOTEMPTY) {
    if (::renameat2(AT_FDCWD, working_.c_str(), AT_FDCWD, path_.c_str(), RENAME_EXCHANGE) == 0) {
      reason = 0;
    } else {  // network file systems: the old folder goes out of the way first
      const std::string old = working_ + ".old";
      reason = renamed(path_, old);
      if (reason == 0 && (reason = renamed(working_, path_)) != 0) renamed(old, path_);
      std::error_code ignored;
      if (reason == 0) fs::remove_all(old, ignored);
    }
  }
  if (reason != 0) refuse_file("put in place the folder", path_, reason);
  sync_folder_of(path_);
  std::error_code ignored;
  fs::remove_all(working_, ignored);
}

}  // namespace octet::io
