#include "octet/watch/runs.hpp"

#include <algorithm>
#include <filesystem>

#include "octet/base/error.hpp"
#include "octet/base/path.hpp"
#include "octet/base/text.hpp"

namespace octet::watch {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_runs = 1000, most_loaded = 16, most_entries = 10000;
constexpr int most_depth = 2;  // runs/<comparison>/<run>
constexpr std::int64_t first_bytes = std::int64_t(48) << 20;

// "a" of "x/a", "x/a/" and "./x/a".
std::string last_part(const std::string& folder) {
  const fs::path path = fs::path(folder).lexically_normal();
  return (path.has_filename() ? path.filename() : path.parent_path().filename()).string();
}

}  // namespace

Runs::Runs(std::vector<std::string> folders) : folders_(std::move(folders)) {
  for (const std::string& folder : folders_)
    if (!is_folder(folder))
      throw ConfigError(format("{}: there is no such folder; name the folder of a run, or one that contains runs", printable(folder)));
  discover();
}

void Runs::discover() {
  for (const std::string& folder : folders_) discover_in(folder, "", last_part(folder), 0);
}

void Runs::discover_in(const std::string& root, const std::string& inner, const std::string& name, int depth) {
  const std::string folder = inner.empty() ? root : root + "/" + inner;
  const auto known = [&](const auto& run) { return run->folder() == folder; };
  std::error_code ignored;
  if (fs::is_regular_file(folder + "/run.json", ignored)) {
    if (runs_.size() < most_runs && std::none_of(runs_.begin(), runs_.end(), known))
      runs_.push_back(std::make_unique<WatchedRun>(root, inner, name)), runs_.back()->refresh();
    return;
  }
  if (depth == most_depth) return;
  std::vector<std::string> found;
  for (fs::directory_iterator entry(folder, ignored), end; entry != end && found.size() < most_entries; entry.increment(ignored))
    if (const std::string file = entry->path().filename().string();
        !file.starts_with('.') && !entry->is_symlink(ignored) && entry->is_directory(ignored))
      found.push_back(file);
  std::sort(found.begin(), found.end());
  for (const std::string& file : found)
    discover_in(root, inner.empty() ? file : inner + "/" + file, depth == 0 ? file : name + "/" + file, depth + 1);
}

WatchedRun& Runs::loaded(std::size_t i) {
  used_.erase(std::remove(used_.begin(), used_.end(), i), used_.end());
  used_.push_back(i);
  if (used_.size() > most_loaded) runs_[used_.front()]->unload(), used_.erase(used_.begin());
  WatchedRun& run = *runs_[i];
  if (!run.loaded()) run.read(first_bytes);
  if (!run.loaded()) throw DataError(run.problem());
  return run;
}

WatchedRun& Runs::fresh(std::size_t i) {
  runs_[i]->refresh();
  return loaded(i);
}

bool Runs::read(std::int64_t most_bytes) {
  bool more = false;
  for (const std::size_t i : used_) more = runs_[i]->read(most_bytes / std::int64_t(used_.size())) || more;
  return more;
}

}  // namespace octet::watch
