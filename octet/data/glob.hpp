#pragma once

#include <string>
#include <vector>

namespace octet::data {

/// The plain files that `pattern` matches, sorted by bytes, each once.
/// `*`, `?` and `[a-z]` match inside one name, `**` as a whole name matches any number of folders, also none; at the end it matches
/// every file below. As in a shell, a name that begins with a dot is matched only by a pattern that does too, and `**` does not follow
/// symbolic links to folders. A path that exists as it is written is taken as it is. A link to nothing is skipped with a warning.
/// No match = empty. Throws IoError when a folder cannot be listed, ConfigError when the path names a folder or a device.
std::vector<std::string> files_matching(const std::string& pattern);

}  // namespace octet::data
