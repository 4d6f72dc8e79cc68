#include "octet/base/path.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <filesystem>

#include "octet/base/descriptor.hpp"
#include "octet/base/error.hpp"
#include "octet/base/folder.hpp"
#include "octet/base/text.hpp"

namespace octet {
namespace {

namespace fs = std::filesystem;

bool look(const std::string& path, struct stat& facts) {
  if (::stat(path.c_str(), &facts) == 0) return true;
  if (errno != ENOENT && errno != ENOTDIR) refuse_file("read", path, errno);
  return false;
}

}  // namespace

bool exists(const std::string& path) {
  struct stat facts {};
  return look(path, facts);
}

bool is_folder(const std::string& path) {
  struct stat facts {};
  return look(path, facts) && S_ISDIR(facts.st_mode);
}

bool is_link(const std::string& path) {
  struct stat facts {};
  return ::lstat(path.c_str(), &facts) == 0 && S_ISLNK(facts.st_mode);
}

void refuse_link(const std::string& path) {
  throw DataError(format("{}: a symbolic link is not followed here; put the file itself in its place", printable(path)));
}

std::string path_within(const std::string& folder, const std::string& name) {
  const fs::path path = fs::path(folder) / name;
  std::error_code reason;
  const fs::file_status status = fs::symlink_status(path, reason);
  if (!fs::exists(status)) throw DataError(format("{}: the file '{}' is missing; fetch it again", printable(folder), printable(name)));
  if (!fs::is_symlink(status)) return path.string();
  const fs::path target = fs::canonical(path, reason), home = fs::canonical(folder, reason);
  const fs::path snapshots = home.parent_path();
  if (!target.empty() && snapshots.filename() == "snapshots" && target.parent_path() == snapshots.parent_path() / "blobs")
    return target.string();
  throw DataError(format("{}: '{}' is a symbolic link out of the folder, which is not followed; put the file itself there",
                         printable(folder), printable(name)));
}

std::string behind_links(const std::string& path) {
  constexpr int most_links = 40;  // as many as the kernel follows
  std::string at = path;
  for (int i = 0; i < most_links; ++i) {
    char target[PATH_MAX];
    const ssize_t n = ::readlink(at.c_str(), target, sizeof target);
    if (n < 0) return at;  // no link, or nothing there
    const std::string_view to(target, std::size_t(n));
    at = to.starts_with('/') ? std::string(to) : folder_of(at) + "/" + std::string(to);
  }
  refuse_file("write", path, ELOOP);
}

}  // namespace octet
