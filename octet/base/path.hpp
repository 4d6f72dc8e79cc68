#pragma once

#include <string>

namespace octet {

/// Whether there is a file, folder or anything else at `path`, links followed. Throws IoError when the system refuses access: a loop of
/// links, a name that is too long, a folder that may not be searched.
bool exists(const std::string& path);
/// The same for a folder alone; false for anything else.
bool is_folder(const std::string& path);

/// Whether `path` itself is a symbolic link.
bool is_link(const std::string& path);
/// Throws the DataError for a symbolic link at a place where none is followed.
[[noreturn]] void refuse_link(const std::string& path);
/// Where the file `name` of `folder` really is. A symbolic link is followed only in the layout of the Hugging Face cache, where
/// snapshots/<revision>/x points into blobs/ beside snapshots/. Throws DataError when it is missing or leads elsewhere.
std::string path_within(const std::string& folder, const std::string& name);

/// `path` with the symbolic links of its last part followed, so that replacing the result keeps the links. Their target need not exist.
/// Throws IoError on a loop of links.
std::string behind_links(const std::string& path);

}  // namespace octet
