#pragma once

#include <map>
#include <vector>

#include "octet/train/checkpoint/manifest.hpp"
#include "octet/train/checkpoint/stored_variable.hpp"

namespace octet::train {

/// Variables that ranks divide are stored in slices of consecutive values, each under its variable's name, "#", and its first element:
/// "engine.model.head.weight#4096". A slice is flat, and has scales of its own.
std::string slice_name(std::string_view variable, std::int64_t first);

/// The files with the state of one checkpoint, one per rank that wrote: "state.safetensors", "state-1.safetensors", ...
class StateFiles {
 public:
  /// Files of a checkpoint's folder. Throws DataError or IoError.
  StateFiles(const std::string& folder, const std::vector<std::string>& names);
  /// Those of its manifest.
  StateFiles(const std::string& folder, const Manifest&);

  /// For messages: the first one's path.
  const std::string& path() const { return files_.front().path(); }
  std::optional<io::TensorView> find(std::string_view name) const;
  /// Tensors of all files, and of those with such a beginning.
  std::size_t count() const;
  std::size_t count(std::string_view prefix) const;

  /// A variable as it was stored: whole, or in slices that cover it in order. Points into the files.
  struct Slice {
    std::int64_t first = 0, count = 0;
    StoredVariable part;
  };
  struct Variable {
    std::vector<Slice> slices;
    bool whole = true;  // one tensor with the variable's shape
    Storage storage = Storage::f32;
    std::int64_t count = 0;
    std::size_t tensors = 0;  // that belong to it
  };
  /// Throws DataError if slices leave a gap, overlap, or are stored differently.
  std::optional<Variable> variable(const std::string& name) const;

 private:
  std::vector<io::SafetensorsFile> files_;
  std::map<std::string, std::map<std::int64_t, std::size_t>> slices_;  // by variable and first element: the file
};

/// All its values, exactly.
std::vector<float> values_of(const StateFiles::Variable&);

/// The name of the file that a rank writes.
std::string state_file_name(int rank);

}  // namespace octet::train
