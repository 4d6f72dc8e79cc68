#include "octet/launch/rank_folder.hpp"

#include <stdlib.h>

#include <cerrno>
#include <filesystem>

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

TemporaryFolder::TemporaryFolder() {
  const char* const place = ::getenv("TMPDIR");
  path_ = format("{}/octet-launch-XXXXXX", place == nullptr || *place == 0 ? "/tmp" : place);
  if (::mkdtemp(path_.data()) == nullptr) refuse_file("make the folder", path_, errno);
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace octet::launch
