#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "octet/base/descriptor.hpp"

namespace octet {

/// Symbolic links of a path that is opened.
enum class Link : std::uint8_t {
  follow,
  refuse,      // as the last part
  refuse_all,  // as any part of a path, which is then absolute and without "." and ".."
};

/// A regular file open for reading, and its properties when it was opened. Opening never waits: a pipe or a device is refused.
struct RegularFile {
  Descriptor file;
  std::uint64_t size = 0, device = 0, inode = 0;              // size: bytes
  std::int64_t changed_seconds = 0, changed_nanoseconds = 0;  // time of the last change

  /// Throws DataError where `path` is anything but a regular file or, where `Link` refuses one, where it is or passes a symbolic link;
  /// IoError where the system refuses.
  static RegularFile open(const std::string& path, Link = Link::follow);
  /// The properties of the open file as they are now. Throws IoError, which names `path`.
  RegularFile now(const std::string& path) const;
  /// Its bytes [at, at + bytes) in `into`; fewer where the file ends before. Throws IoError, which names `path`.
  void read(const std::string& path, std::int64_t at, std::size_t bytes, std::string& into) const;
  /// Same file, same size, same time of change.
  bool same_as(const RegularFile&) const;
};

/// Opens a regular file by open(2) with `flags` and the mode 0666 less the umask. A symbolic link at `path` is never followed, and opening
/// never waits. Throws DataError for a link and for anything but a regular file; where the system refuses, an IoError that says it
/// cannot `verb` the file.
Descriptor open_own_file(const std::string& path, int flags, std::string_view verb);

}  // namespace octet
