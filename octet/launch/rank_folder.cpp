#include "octet/launch/rank_folder.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <filesystem>
#include <vector>

#include "octet/base/descriptor.hpp"
#include "octet/base/file.hpp"
#include "octet/base/path.hpp"
#include "octet/base/text.hpp"
#include "octet/launch/run_note.hpp"

namespace octet::launch {
namespace {

constexpr std::size_t most_bytes = 64 << 10;

std::optional<std::string> read(const std::string& path) {
  if (!exists(path)) return {};
  return read_file(path, most_bytes);
}

}  // namespace

std::string RankFolder::file(int rank, const char* what) const { return format("{}/rank-{}.{}", path_, rank, what); }

void RankFolder::tell_process(int rank, pid_t process) const { write_file(file(rank, "process"), std::to_string(process)); }

std::optional<pid_t> RankFolder::process(int rank) const {
  const auto text = read(file(rank, "process"));
  const double number = text ? parse_number(*text).value_or(0) : 0;
  return number > 0 ? std::optional(pid_t(number)) : std::nullopt;
}

void RankFolder::tell_end(const RankEnd& e) const { write_file(file(e.rank, "end"), to_file(e)); }

std::optional<RankEnd> RankFolder::end(int rank) const {
  const auto text = read(file(rank, "end"));
  return text ? std::optional(rank_end_of(rank, *text)) : std::nullopt;
}

bool RankFolder::is_there() const { return exists(path_); }
bool RankFolder::has_begun() const { return exists(begun_note(run_note())); }
std::string RankFolder::run() const { return read(run_note()).value_or(""); }

void RankFolder::release() const { write_file(path_ + "/released", ""); }
bool RankFolder::released() const { return exists(path_ + "/released"); }

namespace {
namespace fs = std::filesystem;

constexpr double settle_seconds = 60;  // a younger folder without a lock is one that another launcher makes now

Descriptor lock_of(const std::string& folder, int flags) {
  Descriptor file(folder + "/.lock", O_RDWR | O_NOFOLLOW | flags, 0600);
  return file.ok() && ::flock(file.number(), LOCK_EX | LOCK_NB) == 0 ? std::move(file) : Descriptor();
}

// Of a process of this user that was killed: it would hold the lock.
bool is_left(const std::string& folder) {
  struct stat s {};
  if (::lstat(folder.c_str(), &s) != 0 || !S_ISDIR(s.st_mode) || s.st_uid != ::geteuid()) return false;
  if (lock_of(folder, 0).ok()) return true;
  struct stat lock {};
  return ::lstat((folder + "/.lock").c_str(), &lock) != 0 && double(::time(nullptr) - s.st_mtime) > settle_seconds;
}

void remove_left(const std::string& place) {
  std::error_code ignored;
  std::vector<std::string> left;
  for (fs::directory_iterator at(place, ignored), end; !ignored && at != end; at.increment(ignored))
    if (at->path().filename().string().starts_with(TemporaryFolder::prefix) && is_left(at->path().string()))
      left.push_back(at->path().string());
  for (const std::string& folder : left) fs::remove_all(folder, ignored);
}

}  // namespace

std::string TemporaryFolder::place() {
  const char* const place = ::getenv("TMPDIR");
  return place == nullptr || *place == 0 ? "/tmp" : place;
}

TemporaryFolder::TemporaryFolder(const std::string& place) {
  remove_left(place);
  // It gets its name once it is locked, so that no other launcher takes it for one that is left.
  std::string made = format("{}/.{}XXXXXX", place, prefix);
  if (::mkdtemp(made.data()) == nullptr) refuse_file("make the folder", made, errno);
  lock_ = lock_of(made, O_CREAT);
  path_ = format("{}/{}", place, made.substr(place.size() + 2));
  if (::rename(made.c_str(), path_.c_str()) != 0) refuse_file("make the folder", path_, errno);
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace octet::launch
