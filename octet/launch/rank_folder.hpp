#pragma once

#include <sys/types.h>

#include <optional>

#include "octet/base/descriptor.hpp"
#include "octet/launch/rank_end.hpp"

namespace octet::launch {

/// The folder by which the launcher and the processes around its ranks tell each other what happens: process numbers, ends, and the folder
/// of the run. Its files are written atomically. The launcher makes and removes it; ranks find it in the variable `OCTET_LAUNCH_FOLDER`.
class RankFolder {
 public:
  static constexpr const char* variable = "OCTET_LAUNCH_FOLDER";

  explicit RankFolder(std::string path) : path_(std::move(path)) {}
  const std::string& path() const { return path_; }
  /// Whether it is there: cleaners of temporary files may remove it.
  bool is_there() const;

  void tell_process(int rank, pid_t) const;
  /// The process of a rank, or none before it has started.
  std::optional<pid_t> process(int rank) const;

  void tell_end(const RankEnd&) const;
  std::optional<RankEnd> end(int rank) const;

  /// The launcher has ended all ranks: the processes around failed ones may end, too.
  void release() const;
  bool released() const;

  /// The file by which rank 0 tells of its run (run_note.hpp).
  std::string run_note() const { return path_ + "/run"; }
  /// Whether all ranks have met, and may have work to save.
  bool has_begun() const;
  /// The folder of the run that they train, or "".
  std::string run() const;

 private:
  std::string file(int rank, const char* what) const;

  std::string path_;
};

/// A new folder of this process, removed with the object. If the process is killed, the next one of the same user removes it.
class TemporaryFolder {
 public:
  static constexpr std::string_view prefix = "octet-launch-";

  /// Below TMPDIR or /tmp. Throws IoError.
  TemporaryFolder() : TemporaryFolder(place()) {}
  explicit TemporaryFolder(const std::string& place);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  static std::string place();

  std::string path_;
  Descriptor lock_;  // held while the folder is in use
};

}  // namespace octet::launch
