#include "octet/base/path.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>

#include "octet/base/descriptor.hpp"
#include "octet/base/folder.hpp"

namespace octet {
namespace {

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
