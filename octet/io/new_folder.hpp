#pragma once

#include <string>

namespace octet::io {

/// A folder that stands under its name only when it is whole. It is filled under a temporary name beside its own
/// ("<name>.octet-<process>.tmp"), which the destructor removes. Every function throws IoError.
class NewFolder {
 public:
  /// Makes the temporary folder, and the folders above it where there are none. `path` may be a folder, never another file.
  explicit NewFolder(const std::string& path);
  ~NewFolder();
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;

  /// Where the files go until commit().
  const std::string& working() const { return working_; }
  /// Puts the folder under its name. One that is there already is exchanged for it at a stroke, where the file system can, and then removed
  /// with all that it holds.
  void commit();

 private:
  std::string path_, working_;
};

}  // namespace octet::io
