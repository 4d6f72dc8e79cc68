#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "octet/base/regular_file.hpp"

namespace octet {

/// The bytes of the regular file at `path`. Never holds more than `max_bytes` + 1 bytes, independent of the file's stated size.
/// Throws IoError when the system refuses or `path` is a folder (names the path and the reason), DataError when there are more than
/// `max_bytes`, or if `path` is a pipe, a device or a socket, or a symbolic link that is refused.
std::string read_file(const std::string& path, std::size_t max_bytes, Link = Link::follow);

/// Writes `bytes` to `path`, following symbolic links. A regular file is replaced atomically: after a crash or power loss it has either the
/// old or the new bytes (a temporary file ".octet-<process>-<n>.tmp" in the same folder, mode 0666 less the umask, fsync, rename, fsync of
/// the folder). A device or a pipe is opened and written in place. Creates no folders.
/// Throws IoError; the temporary file is then removed, and `path` is unchanged unless only the folder's fsync failed.
void write_file(const std::string& path, std::string_view bytes);
/// The same for a file of Octet's own in a folder that others may have prepared: DataError for a symbolic link, a device or a pipe.
void write_own_file(const std::string& path, std::string_view bytes);

/// Throws the IoError that write_file() would throw, as far as it is known in advance. For outputs written after long work.
void require_writable(const std::string& path);

}  // namespace octet
