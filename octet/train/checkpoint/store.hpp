#pragma once

#include <string>
#include <vector>

#include "octet/train/checkpoint/manifest.hpp"
#include "octet/train/checkpoint/snapshot.hpp"

namespace octet::train {

/// The checkpoints of one run: a folder `step-<number>` each, in a folder of their own. One is written under a temporary name, made
/// durable, read back, and renamed, its manifest last; so a folder of that name is complete, or was damaged later, which verify() finds.
/// The newest is found by the names; no file points to it. For one process and one thread at a time.
class CheckpointStore {
 public:
  /// `folder` is made by the first write().
  explicit CheckpointStore(std::string folder) : folder_(std::move(folder)) {}

  /// Steps of which there is a checkpoint, rising; none when there is no folder. Throws IoError.
  std::vector<std::int64_t> steps() const;
  std::string path(std::int64_t step) const;
  /// Reads every byte. Throws DataError or IoError naming the file that is not as it was written.
  Manifest verify(std::int64_t step) const;
  /// Its manifest alone, for a reader of files that another has verified. Throws DataError or IoError.
  Manifest manifest(std::int64_t step) const { return read_manifest(path(step), step); }
  /// Reads every byte of one file of a checkpoint. Throws as verify().
  void verify_file(std::int64_t step, const Manifest::File& file) const { verify_file(path(step), file); }
  /// Throws IoError when it could not be written whole or did not read back; earlier checkpoints stay, unless of the same step.
  void write(const Snapshot&) const;

  // The same in parts, by several ranks on one file system: rank 0 prepares, then each writes its file and reads it back, then rank 0
  // commits all of them, of which it reads no byte.
  void prepare(std::int64_t step) const;
  Manifest::File write_file(const Snapshot&, int rank) const;
  void commit(const Snapshot& facts, const std::vector<Manifest::File>&) const;
  /// Removes the files of a step that is not committed.
  void abandon(std::int64_t step) const;

  /// Removes all but the `keep` newest of those up to `newest`. Throws IoError.
  void retain(std::int64_t newest, std::int64_t keep) const;
  /// Removes those of steps after `last`. Throws IoError.
  void forget_after(std::int64_t last) const;
  /// Removes the unfinished folders of killed writers.
  void collect_garbage() const;

 private:
  std::string working_folder(std::int64_t step) const;
  Manifest read_manifest(const std::string& folder, std::int64_t step) const;
  void verify_file(const std::string& folder, const Manifest::File&) const;
  void remove(const std::string& path) const;

  std::string folder_;
};

}  // namespace octet::train
