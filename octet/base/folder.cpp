#include "octet/base/folder.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "octet/base/descriptor.hpp"
#include "octet/base/path.hpp"

namespace octet {
std::string folder_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

int make_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0777) != 0) return errno;
  sync_folder_of(path);
  return 0;
}

int make_folders(const std::string& path) {
  if (path.ends_with('/') && path.size() > 1) return make_folders(path.substr(0, path.size() - 1));
  if (is_folder(path)) return 0;
  if (const int reason = path.find('/') == std::string::npos ? 0 : make_folders(folder_of(path))) return reason;
  const int reason = make_folder(path);
  if (reason != EEXIST) return reason;
  return is_folder(path) ? 0 : ENOTDIR;  // a folder: another process was faster
}

void sync_folder_of(const std::string& path) {
  const Descriptor folder(folder_of(path), O_RDONLY | O_DIRECTORY);
  // Some file systems cannot sync a folder and return EINVAL, which is no error.
  if (!folder.ok() || (::fsync(folder.number()) != 0 && errno != EINVAL)) refuse_file("make durable", path, errno);
}

}  // namespace octet
