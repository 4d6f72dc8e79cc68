#include "octet/data/glob.hpp"

#include <algorithm>
#include <filesystem>
#include <set>
#include <span>

#include "octet/base/error.hpp"
#include "octet/base/log.hpp"
#include "octet/base/text.hpp"
#include "octet/base/wildcard.hpp"

namespace octet::data {
namespace {
namespace fs = std::filesystem;

bool is_glob(const std::string& name) { return name.find_first_of("*?[") != std::string::npos; }

/// The entries of `folder`, "" being the current one. A folder that is not there has none.
std::vector<fs::directory_entry> entries_of(const fs::path& folder) {
  std::vector<fs::directory_entry> entries;
  std::error_code error;
  fs::directory_iterator it(folder.empty() ? fs::path(".") : folder, error);
  for (; !error && it != fs::directory_iterator(); it.increment(error)) entries.push_back(*it);
  if (error && error != std::errc::no_such_file_or_directory && error != std::errc::not_a_directory)
    throw IoError(format("cannot list '{}': {}", printable(folder.string()), error.message()));
  return entries;
}

/// A name that begins with a dot is matched by a pattern that does so, too.
bool matches(const std::string& pattern, const std::string& name) {
  return (!name.starts_with('.') || pattern.starts_with('.')) && wildcard_match(pattern, name);
}

class Search {
 public:
  /// Each folder once for each rest of the pattern: several `**` lead to the same one in many ways.
  void run(const fs::path& folder, std::span<const std::string> names) {
    if (names.empty() || !seen_.emplace(folder.string(), names.size()).second) return;
    const std::string& name = names.front();
    const auto rest = names.subspan(1);
    if (name == "**") return below(folder, names);
    if (!is_glob(name)) return take(folder / name, rest);
    for (const fs::directory_entry& entry : entries_of(folder)) {
      const std::string found = entry.path().filename().string();
      if (matches(name, found)) take(folder / found, rest);
    }
  }

  std::vector<std::string> found;

 private:
  /// `**`: the rest here, and `**` again in every folder below.
  void below(const fs::path& folder, std::span<const std::string> names) {
    if (names.size() == 1) files_in(folder);
    else run(folder, names.subspan(1));
    for (const fs::directory_entry& entry : entries_of(folder)) {
      const std::string name = entry.path().filename().string();
      std::error_code ignored;
      if (name.front() != '.' && !entry.is_symlink(ignored) && entry.is_directory(ignored)) run(folder / name, names);
    }
  }

  void files_in(const fs::path& folder) {
    for (const fs::directory_entry& entry : entries_of(folder))
      if (const std::string name = entry.path().filename().string(); !name.starts_with('.')) take(folder / name, {});
  }

  void take(const fs::path& path, std::span<const std::string> rest) {
    if (!rest.empty()) return run(path, rest);
    std::error_code error;
    if (fs::is_regular_file(path, error)) return found.push_back(path.lexically_normal().string());
    if (fs::is_symlink(path, error) && !fs::exists(path, error))
      log::warn("skipped '{}': a symbolic link to nothing", printable(path.string()));
  }

  std::set<std::pair<std::string, std::size_t>> seen_;
};

}  // namespace

std::vector<std::string> files_matching(const std::string& pattern) {
  const fs::path path(pattern);
  std::error_code ignored;
  if (fs::is_regular_file(path, ignored)) return {path.lexically_normal().string()};
  if (fs::is_directory(path, ignored))
    throw ConfigError(
        format("'{}' is a folder; name its files, such as '{}'", printable(pattern), printable((path / "**" / "*.txt").string())));
  if (fs::exists(path, ignored)) throw ConfigError(format("'{}' is not a plain file; copy its text into one", printable(pattern)));

  std::vector<std::string> names;
  for (const fs::path& name : path.relative_path())
    if (name != "**" || names.empty() || names.back() != "**") names.push_back(name.string());  // `**/**` is `**`
  Search search;
  search.run(path.root_path(), names);
  std::ranges::sort(search.found);
  search.found.erase(std::unique(search.found.begin(), search.found.end()), search.found.end());
  return search.found;
}

}  // namespace octet::data
