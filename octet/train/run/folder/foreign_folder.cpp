#include "octet/train/run/folder/foreign_folder.hpp"

#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "octet/base/descriptor.hpp"
#include "octet/base/error.hpp"
#include "octet/base/path.hpp"
#include "octet/base/text.hpp"

namespace octet::train {
namespace {

namespace fs = std::filesystem;

// Some systems give each user a group of the same name, with write access and no other members.
bool is_own_group(gid_t group) {
  const passwd* user = ::getpwuid(::geteuid());
  if (user == nullptr || user->pw_gid != group) return false;
  const std::string name = user->pw_name;
  const struct group* entry = ::getgrgid(group);
  return entry != nullptr && entry->gr_name == name && entry->gr_mem[0] == nullptr;
}

// "belongs to another user", or "". Of a link itself, not of its target.
std::string foreign(const std::string& path) {
  struct stat facts {};
  if (::lstat(path.c_str(), &facts) != 0) refuse_file("read", path, errno);
  if (facts.st_uid != ::geteuid()) return "belongs to another user";
  const bool by_group = (facts.st_mode & S_IWGRP) != 0 && !is_own_group(facts.st_gid);
  return by_group || (facts.st_mode & S_IWOTH) != 0 ? "can be written by other users" : "";
}

}  // namespace

void require_no_links(const std::string& folder) {
  std::error_code reason;
  for (fs::directory_iterator at(folder, reason), end; !reason && at != end; at.increment(reason))
    if (std::error_code ignored; at->is_symlink(ignored)) refuse_link(at->path().string());
  if (reason) refuse_file("read the folder", folder, reason.value());
}

void require_own_command(const std::string& folder, const std::string& file, const std::vector<std::string>& command) {
  for (const std::string& path : {folder, file})
    if (const std::string fault = foreign(path); !fault.empty())
      throw ConfigError(
          format("{} {}, and {} names a program that alerts start: {}; make both yours alone, or name the program yourself with --set "
                 "alerts.command, [] for none",
                 printable(path), fault, printable(file), printable(joined(command, " "))));
}

}  // namespace octet::train
