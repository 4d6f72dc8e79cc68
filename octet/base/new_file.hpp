#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "octet/base/descriptor.hpp"

namespace octet {

/// A file of known size that gets its name only when it is complete. Until publish() it is a temporary file in the same folder
/// (".octet-<process>-<n>.tmp", mode 0666 less the umask), and the destructor removes it. Every function throws IoError.
class NewFile {
 public:
  /// Reserves `size` bytes, so that a full disk is an error here. Bytes never written are 0.
  NewFile(std::string path, std::uint64_t size);
  ~NewFile() { discard(); }
  NewFile(NewFile&& from) noexcept;
  NewFile& operator=(NewFile&&) = delete;

  void write(std::uint64_t offset, std::span<const std::byte> bytes);
  /// Makes the bytes durable; nothing can be written afterwards. A failed fsync is final (the kernel has marked the pages clean, so
  /// a second one would lie): the temporary file is removed.
  void sync();
  /// sync(), then rename: afterwards `path` has these bytes, also after power loss. Replaces an existing file or symbolic link. On an error
  /// `path` is unchanged, unless only the folder's fsync failed.
  void publish();

  const std::string& path() const { return path_; }

 private:
  [[noreturn]] void fail(int reason);
  void discard();

  std::string path_, temporary_;  // temporary_ is empty once it was renamed or removed
  std::uint64_t size_ = 0;
  Descriptor file_;
};

/// Removes the temporary files and folders ("<name>.octet-<process>.tmp") of killed processes from `folder`. Only the one process that may
/// write there may call it.
void remove_abandoned(const std::string& folder);

}  // namespace octet
