#pragma once

#include <string>

namespace octet {

/// "a/b" of "a/b/c", "." of "c", "/" of "/c".
std::string folder_of(const std::string& path);

/// Makes the folder, whose parent is there, and its entry in the parent durable. 0, or the system's reason: EEXIST where there is
/// something of this name. Throws IoError when it was made and could not be made durable.
int make_folder(const std::string& path);

/// The same for each part of the path that is missing; 0 also where nothing was. ENOTDIR where something that is no folder is in the way.
int make_folders(const std::string& path);

/// Makes what was made, renamed and removed in the folder of `path` durable. Throws IoError.
void sync_folder_of(const std::string& path);

}  // namespace octet
