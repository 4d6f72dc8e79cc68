#pragma once

#include <algorithm>
#include <map>
#include <vector>

#include "octet/tensor/cut.hpp"
#include "octet/train/checkpoint/manifest.hpp"
#include "octet/train/checkpoint/stored_variable.hpp"

namespace octet::train {

/// Variables that ranks divide are stored in slices, each under its variable's name, "#", and its first element:
/// "engine.model.head.weight#4096". One of values that are not neighbours also has the length of their runs, and the distance from one run
/// to the next: "engine.model.layers.0.mlp.down.weight#512:256:1024". A slice is flat, and has scales of its own.
std::string slice_name(std::string_view variable, const CutPiece&);

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

  /// A variable as it was stored: whole, or in slices that cover it. Points into the files.
  struct Slice {
    CutPiece place;
    StoredVariable part;
  };
  /// Neighbours: values [first, first + count) of the variable are those of a slice from `begin` on.
  struct Run {
    std::int64_t first = 0, count = 0, begin = 0;
    std::size_t slice = 0;
  };
  struct Variable {
    std::vector<Slice> slices;
    std::vector<Run> runs;  // in the order of the variable
    bool whole = true;      // one tensor with the variable's shape
    Storage storage = Storage::f32;
    std::int64_t count = 0;
    std::size_t tensors = 0;  // that belong to it

    /// f(run, from, to, n): values [from, from + n) of the run's slice are those from `to` on of a part with these pieces.
    template <class F>
    void each_overlap(const std::vector<CutPiece>& part, const F& f) const {
      each_run(part, [&](std::int64_t begin, std::int64_t place, std::int64_t n) {
        auto run = std::ranges::lower_bound(runs, place, {}, [](const Run& r) { return r.first + r.count - 1; });
        for (; run != runs.end() && run->first < place + n; ++run) {
          const std::int64_t from = std::max(place, run->first), to = std::min(place + n, run->first + run->count);
          if (from < to) f(*run, run->begin + from - run->first, begin + from - place, to - from);
        }
      });
    }
  };
  /// Throws DataError if slices leave a gap, overlap, or are stored differently.
  std::optional<Variable> variable(const std::string& name) const;

 private:
  std::vector<io::SafetensorsFile> files_;
  struct SliceLocation {
    std::size_t file = 0;
    std::string name;
    CutPiece place;  // without the count
  };
  std::map<std::string, std::vector<SliceLocation>> slices_;  // by variable
};

/// All its values, exactly.
std::vector<float> values_of(const StateFiles::Variable&);

/// The name of the file that a rank writes.
std::string state_file_name(int rank);

}  // namespace octet::train
