#include "octet/telemetry/report/selection.hpp"

#include <algorithm>
#include <filesystem>

#include "octet/base/error.hpp"
#include "octet/base/path.hpp"
#include "octet/base/text.hpp"

namespace octet::telemetry {
namespace {
namespace fs = std::filesystem;

/// Where a run is.
struct Found {
  std::string folder;  // as it was named
  fs::path place;      // the same for all names of a folder
};

bool holds(const std::string& folder, const char* file) { return exists(folder + "/" + file); }

void add_run(std::vector<Found>& all, const std::string& folder) {
  std::error_code error;
  fs::path place = fs::canonical(folder, error);
  if (error) place = folder;
  const auto same = [&](const Found& f) { return f.place == place; };
  if (std::none_of(all.begin(), all.end(), same)) all.push_back({folder, std::move(place)});
}

bool holds_comparison(const std::string& folder) { return !holds(folder, "run.json") && holds(folder, "compare.json"); }

/// Adds the runs of a folder's comparison, and returns that.
Comparison add_compared(std::vector<Found>& all, const std::string& folder) {
  Comparison comparison = read_comparison(folder + "/compare.json");
  for (const std::string& run : comparison.runs) add_run(all, folder + "/" + run);
  return comparison;
}

/// Adds the runs of `folder`, in its subfolders down to `depth` levels; returns whether there are any.
bool add_runs(std::vector<Found>& all, const std::string& folder, int depth) {
  if (holds(folder, "run.json")) return add_run(all, folder), true;
  if (holds_comparison(folder)) return add_compared(all, folder), true;
  if (depth == 0) return false;
  std::error_code ignored;
  std::vector<std::string> inner;
  for (fs::directory_iterator at(folder, ignored), end; !ignored && at != end; at.increment(ignored))
    if (at->is_directory(ignored)) inner.push_back(at->path().string());
  std::sort(inner.begin(), inner.end());
  bool any = false;
  for (const std::string& one : inner) any = add_runs(all, one, depth - 1) || any;
  return any;
}

/// Runs of one name get their folders' own names, or, where these are the same too, the folders as they were named.
void tell_apart(std::vector<RunRecord>& runs, const std::vector<Found>& found) {
  std::vector<std::string> names;
  for (const RunRecord& run : runs) names.push_back(run.facts.name);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (std::count(names.begin(), names.end(), names[i]) == 1) continue;
    const fs::path own = found[i].place.filename();
    const bool alone = std::count_if(found.begin(), found.end(), [&](const Found& f) { return f.place.filename() == own; }) == 1;
    runs[i].facts.name = alone ? own.string() : found[i].folder;
  }
}

}  // namespace

Selection select_runs(std::span<const std::string> folders) {
  constexpr int depth = 2;  // runs/compare/bf16
  std::vector<Found> found;
  Selection out;
  if (folders.size() == 1 && holds_comparison(folders[0])) {
    out.comparison = add_compared(found, folders[0]);
  } else {
    for (const std::string& folder : folders)
      if (!add_runs(found, folder, depth))
        throw ConfigError(
            format("{}: {}; name the folder of a run or of a comparison", printable(folder),
                   exists(folder) ? "holds neither run.json nor compare.json, nor do its subfolders" : "there is no such folder"));
  }
  for (const Found& f : found) out.runs.push_back(read_run(f.folder));
  if (!out.comparison) tell_apart(out.runs, found);
  return out;
}

}  // namespace octet::telemetry
