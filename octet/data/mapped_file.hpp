#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "octet/base/regular_file.hpp"

namespace octet::data {

/// A file's bytes mapped into memory for reading: pages come from the disk when they are touched. Owns the mapping and the open
/// file, so a file that is deleted or replaced under its name stays readable here; a file changed *in place* does not, and touching
/// pages beyond a new, shorter end would kill the process. check_unchanged() before reading detects this.
class MappedFile {
 public:
  /// Throws DataError when there is no such file or it is not a plain file, IoError when the system refuses.
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(MappedFile&&) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;

  const std::string& path() const { return path_; }
  std::string_view bytes() const { return bytes_; }
  /// Throws DataError when the file's size or time of last change differs from the time of opening.
  void check_unchanged() const;

 private:
  std::string path_;
  RegularFile opened_;
  std::string_view bytes_;
};

}  // namespace octet::data
