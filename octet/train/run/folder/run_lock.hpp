#pragma once

#include <string>

#include "octet/base/descriptor.hpp"

namespace octet::train {

/// Holds a run's folder for this process as long as it lives: an advisory lock on its file `.lock`, which the system drops with the
/// process, however that ends. Where a file system knows no locks there is none.
class RunLock {
 public:
  /// Throws IoError when another process holds the folder, or the file cannot be made.
  explicit RunLock(const std::string& folder);

  /// Whether the folder is still found under its name: not moved, removed or exchanged since.
  bool in_place() const;

 private:
  std::string path_;
  Descriptor file_;
};

}  // namespace octet::train
