#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace octet {

/// The bytes of the file at `path`, which may be a pipe. Never holds more than `max_bytes` + 1 bytes, whatever the file's stated size.
/// Throws IoError when the system refuses (names the path and the reason), DataError when there are more than `max_bytes`.
std::string read_file(const std::string& path, std::size_t max_bytes);

/// Puts `bytes` at `path` so that after a crash or power loss `path` holds either its old bytes or all the new ones: a temporary
/// file in the same folder (".octet-<process>-<n>.tmp", mode 0666 less the umask), fsync, rename, fsync of the folder.
/// Replaces a file that is there; a symbolic link at `path` is itself replaced. Makes no folders.
/// Throws IoError; the temporary file is then gone, and `path` is as before unless only the folder's fsync failed.
void write_file_atomically(const std::string& path, std::string_view bytes);

}  // namespace octet
