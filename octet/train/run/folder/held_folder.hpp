#pragma once

#include <string>

#include "octet/base/descriptor.hpp"

namespace octet::train {

/// A folder that this process holds as long as it lives, and whose files it writes: a run's, or a comparison's. Of several ranks the first
/// one holds it. The form of the others, which hold nothing, writes nothing and is always in place.
/// The hold is an advisory lock on the file `.lock` of the folder, which the system drops with the process, however that ends. Where a file
/// system knows no locks there is none.
class HeldFolder {
 public:
  HeldFolder() = default;
  /// Throws IoError when another process holds the folder, or the file cannot be made.
  explicit HeldFolder(const std::string& folder);

  /// "" where nothing is held.
  const std::string& path() const { return folder_; }
  /// Whether the folder is still found under its name: not moved, removed or exchanged since.
  bool in_place() const;
  /// write(path) for the file of that name.
  template <class Write>
  void write(const char* file, const Write& write) const {
    if (!folder_.empty()) write(folder_ + "/" + file);
  }

 private:
  std::string folder_;
  Descriptor lock_;
};

}  // namespace octet::train
