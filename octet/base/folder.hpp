#pragma once

#include <string>

namespace octet {

/// "a/b" of "a/b/c", "." of "c", "/" of "/c".
std::string folder_of(const std::string& path);

/// Creates the folder in an existing parent, durably. Returns 0 or the errno: EEXIST if the name exists. Throws IoError when it was created
/// but fsync failed.
int make_folder(const std::string& path);

/// The same for each missing part of the path; 0 also if none is missing, ENOTDIR if a part is not a folder.
int make_folders(const std::string& path);

/// Makes earlier changes in the folder of `path` (files created, renamed, removed) durable. Throws IoError.
void sync_folder_of(const std::string& path);

}  // namespace octet
