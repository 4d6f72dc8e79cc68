#pragma once

#include <string>

namespace octet::io {

/// A folder that gets its name only when it is complete. It is filled under a temporary name beside its own ("<name>.octet-<process>.tmp"),
/// which the destructor removes. Every function throws IoError.
class NewFolder {
 public:
  /// Creates the temporary folder and missing parent folders. `path` may be a folder, never another file.
  explicit NewFolder(const std::string& path);
  ~NewFolder();
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;

  /// Where the files go until commit().
  const std::string& working() const { return working_; }
  /// Renames the folder to its name. An existing folder is exchanged atomically, if the file system can, and then removed with its content.
  void commit();

 private:
  std::string path_, working_;
};

}  // namespace octet::io
