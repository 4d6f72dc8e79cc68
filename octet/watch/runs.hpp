#pragma once

#include <memory>
#include <string>
#include <vector>

#include "octet/watch/watched_run.hpp"

namespace octet::watch {

/// The runs in some folders, numbered from 0. A number never changes its run; a run that appears later gets the next one.
class Runs {
 public:
  /// `folders`: runs, comparisons, or folders that contain such folders; a folder without any run may get them later. Links below them are
  /// not followed, since other users may write there, and readers of the page see all that this process may read. Throws ConfigError for a
  /// path that is not a folder.
  explicit Runs(std::vector<std::string> folders);

  /// Adds runs that appeared since the last call, up to 1000 in all.
  void discover();

  std::size_t size() const { return runs_.size(); }
  WatchedRun& at(std::size_t i) { return *runs_[i]; }
  const WatchedRun& at(std::size_t i) const { return *runs_[i]; }

  /// The run with its history loaded or being loaded; of other runs the history that was used longest ago is dropped beyond 16.
  /// Throws DataError where the files of the run do not allow it.
  WatchedRun& loaded(std::size_t i);
  /// The same after refresh(), so that the history fits the facts of the run as they are now.
  WatchedRun& fresh(std::size_t i);
  /// Reads new events of loaded runs, about `most_bytes` in all; returns whether more wait.
  bool read(std::int64_t most_bytes);

 private:
  void discover_in(const std::string& root, const std::string& inner, const std::string& name, int depth);

  std::vector<std::string> folders_;
  std::vector<std::unique_ptr<WatchedRun>> runs_;
  std::vector<std::size_t> used_;  // loaded runs, the last one at the end
};

}  // namespace octet::watch
